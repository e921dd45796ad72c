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
import pyarrow as pa

from nodescope.recording.part import Part
from nodescope.recording.window import Window

Key = tuple[Any, ...]
Array = npt.NDArray[Any]


class Tables(Protocol):
    """Something to read tables from, sorted as the archive sorts them."""

    def columns(self, table: str, names: Sequence[str]) -> Mapping[str, Array]:
        """Columns as numpy has them, null as NaN or None; `time_ns` in wall time."""
        ...


class SegmentTables:
    """The tables of one segment."""

    def __init__(self, segment: Part) -> None:
        self._segment = segment

    def columns(self, table: str, names: Sequence[str]) -> Mapping[str, Array]:
        content = self._segment.read(table, names)
        found = {name: _as_numpy(content.column(name)) for name in names}
        if len(content):
            found["time_ns"] = self._segment.wall_ns(found["time_ns"])
        return found


def _as_numpy(column: Any) -> Array:
    """A column as numpy has it; pyarrow cannot do it for words that are null in every row."""
    if pa.types.is_dictionary(column.type) and column.null_count == len(column):
        return np.full(len(column), None, object)
    values: Array = column.to_numpy()
    return values


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
        times = columns["time_ns"]
        values = {name: columns[name].astype(np.float64) for name in self._counters}
        for key, start, end in groups([columns[name] for name in self._keys]):
            within = slice(start, start + int(np.searchsorted(times[start:end], window.to_ns)))
            for name in self._counters:
                self._rise(key, name, times[within], values[name][within], window.from_ns)

    def _rise(self, key: Key, name: str, times: Array, values: Array, from_ns: int) -> None:
        known = ~np.isnan(values)
        if not known.any():
            return
        times, values = times[known], values[known]
        before = self._last.setdefault(key, {}).get(name, values[0])
        steps = np.maximum(np.diff(values, prepend=before), 0)
        self._last[key][name] = float(values[-1])
        rises = self.rises.setdefault(key, {})
        rises[name] = rises.get(name, 0) + int(steps[times >= from_ns].sum())


def groups(keys: Sequence[Array]) -> Iterator[tuple[Key, int, int]]:
    """Runs of equal keys in sorted columns: the key, and from which row to which."""
    length = len(keys[0])
    if not length:
        return
    begins = np.ones(length, bool)
    begins[1:] = np.any([column[1:] != column[:-1] for column in keys], axis=0)
    starts = np.flatnonzero(begins).tolist()
    for start, end in zip(starts, [*starts[1:], length], strict=True):
        yield tuple(_plain(column[start]) for column in keys), start, end


def _plain(value: Any) -> Any:
    """A value as Python has it; what is not known is None."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if plain != plain else plain


def latest_rows(
    tables: Tables, table: str, keys: Sequence[str], names: Sequence[str], to_ns: int
) -> dict[Key, dict[str, Any]]:
    """By key, the last row before a moment."""
    columns = tables.columns(table, ["time_ns", *keys, *names])
    found: dict[Key, dict[str, Any]] = {}
    for key, start, end in groups([columns[name] for name in keys]):
        last = start + int(np.searchsorted(columns["time_ns"][start:end], to_ns)) - 1
        if last >= start:
            found[key] = dict(zip(keys, key, strict=True))
            found[key] |= {name: _plain(columns[name][last]) for name in names}
    return found
