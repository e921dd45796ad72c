"""How far raw counters rose in a window, by what they are about.

Tables of counters have a row where something changed and are whole at the start
of each segment. A counter that fell was started anew (a driver was loaded again)
and counts from there. Times are on the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from nodescope.analysis.window import Window
from nodescope.archive.reader import Segment

Key = tuple[Any, ...]
Floats = npt.NDArray[np.float64]


class Tables(Protocol):
    """Something to read tables from, sorted as the archive sorts them."""

    def columns(self, table: str, names: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        """Columns as lists; `time_ns` in wall time."""
        ...


class SegmentTables:
    """The tables of one segment."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def columns(self, table: str, names: Sequence[str]) -> Mapping[str, Sequence[Any]]:
        content = self._segment.read(table, names)
        found = {name: content.column(name).to_pylist() for name in names}
        if len(content):
            times = np.array(found["time_ns"], np.int64)
            found["time_ns"] = self._segment.wall_ns(times).tolist()
        return found


class Counters:
    """The rises of some columns of a table, gathered segment after segment."""

    def __init__(self, table: str, keys: Sequence[str], counters: Sequence[str]) -> None:
        self._table = table
        self._keys = keys
        self._counters = counters
        self._last: dict[Key, dict[str, float]] = {}
        self.rises: dict[Key, dict[str, int]] = {}
        """By key, the columns that are known, and how far each rose."""

    def add(self, tables: Tables, window: Window) -> None:
        """Take the rows of one segment; segments come in the order of time."""
        names = ["time_ns", *self._keys, *self._counters]
        columns = tables.columns(self._table, names)
        times = np.array(columns["time_ns"], np.int64)
        values = {name: np.array(columns[name], np.float64) for name in self._counters}
        for key, start, end in groups([columns[name] for name in self._keys]):
            within = slice(start, start + int(np.searchsorted(times[start:end], window.to_ns)))
            for name in self._counters:
                self._rise(key, name, times[within], values[name][within], window.from_ns)

    def _rise(
        self, key: Key, name: str, times: npt.NDArray[np.int64], values: Floats, from_ns: int
    ) -> None:
        known = ~np.isnan(values)
        if not known.any():
            return
        times, values = times[known], values[known]
        before = self._last.setdefault(key, {}).get(name, values[0])
        steps = np.maximum(np.diff(values, prepend=before), 0)
        self._last[key][name] = float(values[-1])
        rises = self.rises.setdefault(key, {})
        rises[name] = rises.get(name, 0) + int(steps[times >= from_ns].sum())


def groups(keys: Sequence[Sequence[Any]]) -> Iterator[tuple[Key, int, int]]:
    """Runs of equal keys in sorted columns: the key, and from which row to which."""
    start = 0
    rows = list(zip(*keys, strict=True))
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end] != rows[start]:
            yield rows[start], start, end
            start = end


def latest_rows(
    tables: Tables, table: str, keys: Sequence[str], names: Sequence[str], to_ns: int
) -> dict[Key, dict[str, Any]]:
    """By key, the last row before a moment."""
    columns = tables.columns(table, ["time_ns", *keys, *names])
    found: dict[Key, dict[str, Any]] = {}
    for key, start, end in groups([columns[name] for name in keys]):
        rows = [row for row in range(start, end) if columns["time_ns"][row] < to_ns]
        if rows:
            found[key] = {name: columns[name][rows[-1]] for name in (*keys, *names)}
    return found
