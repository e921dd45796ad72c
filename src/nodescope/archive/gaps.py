"""Gaps that touch are one: a source that stays blind says so with every flush.

And the time between two runs of the recorder is a gap, which nobody could record
but the next run: it is derived where that one did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from nodescope.archive.description import MAX_GAPS, MAX_REASON, Description, wall_gap
from nodescope.archive.schema import make_batch, typed_rows
from nodescope.clock import CLOCK_STEP_NS
from nodescope.quantities import SECOND_NS
from nodescope.records.columns import columns_of
from nodescope.records.recorder_tables import Gap

RESTART_NS = SECOND_NS  # a recorder that is replaced sooner leaves no gap worth a line
NOT_RUNNING = "no recorder was running"


class DescribedPart(Protocol):
    """A segment, or a part of a recording that is held elsewhere."""

    @property
    def description(self) -> Description:
        """Return the facts that are known without reading a table."""

    def read(self, table: str, columns: Sequence[str] | None = None) -> Any:
        """Return a table as `pyarrow.Table`."""


def read_part_gaps(part: DescribedPart) -> Sequence[Gap]:
    """Return the gaps a part has noted; its description has them unless they are many or long."""
    described = part.description.gaps
    extent = part.description.tables.get("gaps")
    whole = extent is None or extent.rows <= min(MAX_GAPS, len(described))
    if whole and all(len(gap.reason) < MAX_REASON for gap in described):
        return described
    clock = part.description.clock
    noted = [wall_gap(Gap(**row), clock) for row in part.read("gaps").to_pylist()]
    damaged = described[min(len(noted), MAX_GAPS) :]  # tables: the description alone has those
    return [*noted, *damaged]


def find_gaps(parts: Iterable[DescribedPart]) -> list[Gap]:
    """Return the recorded gaps, and the times between two runs of the recorder."""
    gaps: list[Gap] = []
    before: Description | None = None
    for part in parts:
        gaps += add_pause(before, part.description, list(read_part_gaps(part)))
        before = part.description
    # A gap that lasts over segments is told by each: at times that their clocks place.
    return merge_gaps(gaps, CLOCK_STEP_NS)


def merge_gaps(gaps: Iterable[Gap], slack_ns: int = 0) -> list[Gap]:
    """The gaps in the order of time; those that touch as one, what they lost added up."""
    merged: list[Gap] = []
    last: dict[tuple[str, int | None, str, bool], int] = {}
    for gap in sorted(gaps, key=lambda each: (each.from_ns, each.to_ns)):
        key = (gap.source, gap.cpu, gap.reason, gap.lost is None)
        at = last.get(key)
        if at is None or gap.from_ns > merged[at].to_ns + slack_ns:
            last[key] = len(merged)
            merged.append(gap)
            continue
        before = merged[at]
        lost = None if before.lost is None or gap.lost is None else before.lost + gap.lost
        merged[at] = before.replace(to_ns=max(before.to_ns, gap.to_ns), lost=lost)
    return merged


def merge_rows(table: Any) -> Any:
    """The same for rows of the table `gaps`."""
    gaps = typed_rows(Gap, table)
    merged = merge_gaps(gaps)
    if len(merged) == len(gaps):
        return table
    return pa.Table.from_batches([make_batch("gaps", columns_of(merged))])


def add_pause(before: Description | None, after: Description, gaps: list[Gap]) -> list[Gap]:
    """The gaps of `after`, and the time since `before` if another run wrote that one: told once.

    A run that goes on with an archive tells it itself. An import tells it of its samples,
    and nothing else was recorded in that time either.
    """
    if before is None or before.run == after.run:
        return gaps
    start, end = before.wall_to_ns, after.wall_from_ns
    if end - start <= RESTART_NS:
        return gaps
    for at, gap in enumerate(gaps):
        told = min(gap.to_ns, end) - max(gap.from_ns, start)
        if gap.cpu is None and gap.source in ("all", "samples") and end - start - told < RESTART_NS:
            return [*gaps[:at], gap.replace(source="all"), *gaps[at + 1 :]]
    return [*gaps, Gap(from_ns=start, to_ns=end, source="all", reason=NOT_RUNNING)]
