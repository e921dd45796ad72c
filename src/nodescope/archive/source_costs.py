"""The latest cost of each observer of the node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.archive.reader import Segment
from nodescope.archive.schema import typed_rows
from nodescope.errors import ArchiveError
from nodescope.records.node_tables import SourceCostRow


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
    """Return the latest that is known, dearest first; empty where nothing was observed."""
    for segment in reversed(segments):
        try:
            if "source_costs" not in segment.description.tables:
                continue
            rows = typed_rows(SourceCostRow, segment.read("source_costs"))
        except ArchiveError:
            continue  # damaged: reported where segments are listed
        run_ns = segment.description.start.run_ns
        latest = {row.source: row for row in sorted(rows, key=lambda row: row.time_ns)}
        costs = [_cost(row, run_ns) for row in latest.values()]
        known = [cost for cost in costs if cost is not None]
        return sorted(known, key=lambda cost: (-cost.cpu_ns, cost.source))
    return []


def _cost(row: SourceCostRow, run_ns: int) -> SourceCost | None:
    """Return what an observer cost since its recorder started; None if a part is not known."""
    if row.cpu_ns is None or row.reads is None or row.failures is None:
        return None
    if row.interval_ns is None or row.slowest_ns is None:
        return None
    return SourceCost(
        source=row.source,
        cpu_ratio=row.cpu_ns / max(1, row.time_ns - run_ns),
        cpu_ns=row.cpu_ns,
        reads=row.reads,
        failures=row.failures,
        interval_ns=row.interval_ns,
        slowest_ns=row.slowest_ns,
    )
