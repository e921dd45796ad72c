"""Typed rows of a recording: of a window, or the last ones before a moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nodescope.archive.schema import take_rows
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Part, Parts, overlapping
from nodescope.recording.window import Window
from nodescope.records.table import RowType

LONGEST_STATE_NS = 7200 * SECOND_NS  # what was last known longer ago says nothing of now


Where = tuple[str, str]  # a column, and the text that it has


def read_rows(
    parts: Parts, kind: type[RowType], window: Window, where: Where | None = None
) -> Iterator[RowType]:
    """Read the rows of a window, part by part, with wall times; of one subject with `where`."""
    table = kind.table().name
    for part in overlapping(parts, window):
        if table in part.description.tables:
            yield from _read_part(part, kind, window, where)


def read_state(parts: Parts, kind: type[RowType], at_ns: int) -> list[RowType]:
    """Return the last row of each subject at a moment, earliest first.

    A part says everything once at its start, so the part that holds the moment is
    enough. One that is too young to have done so has no row: the one before is asked.
    """
    reach = Window(at_ns - LONGEST_STATE_NS, at_ns + 1)
    table = kind.table()
    for part in reversed(overlapping(parts, reach)):
        if table.name not in part.description.tables:
            continue
        latest: dict[tuple[Any, ...], RowType] = {}
        rows = sorted(_read_part(part, kind, reach), key=lambda row: row.time_ns)  # type: ignore[attr-defined]
        for row in rows:
            latest[tuple([getattr(row, name) for name in table.subject])] = row
        if latest:
            return list(latest.values())
    return []


def _read_part(
    part: Part, kind: type[RowType], window: Window, where: Where | None = None
) -> Iterator[RowType]:
    names = kind.names()
    content = part.read(kind.table().name, names)
    times = part.wall_ns(content.column("time_ns").to_numpy())
    wanted = (times >= window.from_ns) & (times < window.to_ns)
    if where is not None:
        column, text = where
        wanted &= np.array(content.column(column).to_pylist(), object) == text
    inside = np.flatnonzero(wanted)
    if not len(inside):
        return
    if len(inside) < len(content):
        content = take_rows(content, inside)
    columns = [content.column(name).to_pylist() for name in names]
    columns[names.index("time_ns")] = times[inside].tolist()
    for values in zip(*columns, strict=True):
        yield kind(**dict(zip(names, values, strict=True)))
