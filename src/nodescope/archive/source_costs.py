"""What each observer of the node costs the recorder, as it last said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.archive.reader import Segment
from nodescope.errors import ArchiveError


@dataclass(frozen=True, slots=True)
class SourceCost:
    """One observer, since its recorder started. The ratio is of one core."""

    source: str
    cpu_ratio: float
    cpu_ns: int
    reads: int
    failures: int
    interval_ns: int
    slowest_ns: int


def read_source_costs(segments: Sequence[Segment]) -> list[SourceCost]:
    """The latest that is known, dearest first; empty where nothing was observed."""
    for segment in reversed(segments):
        try:
            if "source_costs" not in segment.description.tables:
                continue
            rows = segment.read("source_costs").to_pylist()
        except ArchiveError:
            continue  # damaged: reported where segments are listed
        run_ns = segment.description.start.run_ns
        latest = {row["source"]: row for row in sorted(rows, key=lambda row: row["time_ns"])}
        costs = [
            SourceCost(
                source,
                row["cpu_ns"] / max(1, row["time_ns"] - run_ns),
                row["cpu_ns"],
                row["reads"],
                row["failures"],
                row["interval_ns"],
                row["slowest_ns"],
            )
            for source, row in latest.items()
            if None not in row.values()
        ]
        return sorted(costs, key=lambda cost: (-cost.cpu_ns, cost.source))
    return []
