"""How far raw counters rose in a window, by what they are about.

Tables of counters have a row where something changed and are whole at the start
of each segment. A counter that fell was started anew (a driver was loaded again)
and counts from there. Times are on the wall clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from nodescope.recording.part import Part
from nodescope.recording.window import Window
from nodescope.records import ColumnKind
from nodescope.records.table import RowType

Subject = tuple[Any, ...]
Array = npt.NDArray[Any]


class Counters(Generic[RowType]):
    """The rises of a table's counters by its subjects, gathered part after part."""

    def __init__(self, kind: type[RowType], window: Window) -> None:
        table = kind.table()
        self._kind = kind
        self._window = window
        self._counters = [each.name for each in table.columns if each.kind is ColumnKind.COUNTER]
        self._last: dict[Subject, dict[str, float]] = {}
        self._rises: dict[Subject, dict[str, int]] = {}

    def add(self, part: Part) -> None:
        """Take the rows of one part; parts come in the order of time."""
        table = self._kind.table()
        if table.name not in part.description.tables:
            return
        content = part.read(table.name, ["time_ns", *table.subject, *self._counters])
        times = part.wall_ns(content.column("time_ns").to_numpy())
        values = {name: _numbers(content.column(name)) for name in self._counters}
        for subject, start, end in groups([_values(content.column(n)) for n in table.subject]):
            length = int(np.searchsorted(times[start:end], self._window.to_ns))
            within = slice(start, start + length)
            for name in self._counters:
                self._rise(subject, name, times[within], values[name][within])

    def _rise(self, subject: Subject, name: str, times: Array, values: Array) -> None:
        known = ~np.isnan(values)
        if not known.any():
            return
        times, values = times[known], values[known]
        before = self._last.setdefault(subject, {}).get(name, values[0])
        steps = np.maximum(np.diff(values, prepend=before), 0)
        self._last[subject][name] = float(values[-1])
        rises = self._rises.setdefault(subject, {})
        rises[name] = rises.get(name, 0) + int(steps[times >= self._window.from_ns].sum())

    def rises(self) -> Iterator[RowType]:
        """Yield a row for each subject: its counters are how far they rose, None if not known."""
        names = self._kind.table().subject
        for subject, rises in self._rises.items():
            keys = dict(zip(names, subject, strict=True))
            yield self._kind(**keys, **rises, time_ns=self._window.to_ns)

    def risen(self, row: RowType) -> RowType:
        """Return the row with its counters replaced by how far they rose."""
        subject = tuple([getattr(row, name) for name in row.table().subject])
        rises = self._rises.get(subject, {})
        return row.replace(**{name: rises.get(name) for name in self._counters})


def groups(keys: Sequence[Array]) -> Iterator[tuple[Subject, int, int]]:
    """Yield runs of equal keys in columns: the key, and from which row to which."""
    length = len(keys[0])
    if not length:
        return
    begins = np.ones(length, bool)
    begins[1:] = np.any([column[1:] != column[:-1] for column in keys], axis=0)
    starts = np.flatnonzero(begins).tolist()
    for start, end in zip(starts, [*starts[1:], length], strict=True):
        yield tuple(_plain(column[start]) for column in keys), start, end


def _numbers(column: Any) -> npt.NDArray[np.float64]:
    """Return a column of numbers; null is NaN."""
    numbers: npt.NDArray[np.float64] = column.to_numpy().astype(np.float64)
    return numbers


def _values(column: Any) -> Array:
    """Return a column as numpy has it."""
    # pyarrow cannot do it for words that are null in every row.
    if pa.types.is_dictionary(column.type) and column.null_count == len(column):
        return np.full(len(column), None, object)
    values: Array = column.to_numpy()
    return values


def _plain(value: Any) -> Any:
    """Return a value as Python has it; what is not known is None."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if plain != plain else plain
