"""Gaps that touch are one: a source that stays blind says so with every flush.

And the time between two runs of the recorder is a gap, which nobody could record
but the next run: it is derived where that one did not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from nodescope.archive.description import Description
from nodescope.archive.schema import make_batch, typed_rows
from nodescope.quantities import SECOND_NS
from nodescope.records.columns import columns_of
from nodescope.records.recorder_tables import Gap

RESTART_NS = SECOND_NS  # a recorder that is replaced sooner leaves no gap worth a line
NOT_RUNNING = "no recorder was running"


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
