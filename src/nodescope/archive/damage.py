"""Tables of a sealed segment that do not hold what its description promises.

A damaged table costs itself. Samples are one table in many: if any of them is damaged,
the segment has no samples. Each lost table is a gap, so that nothing takes it for quiet.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from nodescope.archive.description import MAX_REASON, Description, TableExtent
from nodescope.errors import CorruptSegment
from nodescope.records import SAMPLE_TABLES
from nodescope.records.recorder_tables import Gap

Damage: TypeAlias = tuple[tuple[str, CorruptSegment], ...]  # tables, and what is wrong with each
_IS_DAMAGED = ".parquet is damaged: "


def without_damaged(description: Description, damage: Damage) -> Description:
    """Return a segment without its damaged tables, and without samples if theirs are among them."""
    lost: set[str] = set()
    reasons: dict[str, str] = {}
    for table, error in damage:
        sampled = table in SAMPLE_TABLES
        lost.update(SAMPLE_TABLES if sampled else (table,))
        reason = f"{table}{_IS_DAMAGED}{error.reason}"[:MAX_REASON]
        reasons.setdefault("samples" if sampled else table, reason)
    from_ns, to_ns = description.wall_from_ns, description.wall_to_ns + 1
    gaps = (
        Gap(from_ns=from_ns, to_ns=to_ns, source=source, reason=reason)
        for source, reason in reasons.items()
    )
    kept = {name: each for name, each in description.tables.items() if name not in lost}
    return replace(description, tables=kept, gaps=(*description.gaps, *gaps))


def parse_damage(gap: Gap) -> tuple[str, str] | None:
    """Return the table whose damage is the reason of a gap, and why; None for any other gap."""
    table, found, why = gap.reason.partition(_IS_DAMAGED)
    return (table, why) if found else None


def find_damage(description: Description, check: Callable[[str, TableExtent], None]) -> Damage:
    """Return the tables of a segment that do not hold what it promises, and why."""
    damage: list[tuple[str, CorruptSegment]] = []
    for table, extent in description.tables.items():
        try:
            check(table, extent)
        except CorruptSegment as error:
            damage.append((table, error))
    return tuple(damage)


def check_file(path: str, extent: TableExtent) -> None:
    """Hold a file against what its segment says of it."""
    try:
        status = os.lstat(path)
    except OSError as error:
        raise CorruptSegment(path, "missing") from error
    if not stat.S_ISREG(status.st_mode):
        raise CorruptSegment(path, "not a regular file")
    if status.st_size != extent.bytes:
        reason = f"{extent.bytes} bytes were sealed, but it ends"
        raise CorruptSegment(path, reason, status.st_size)
