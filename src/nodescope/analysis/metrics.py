"""Everything of the node that is counted or gauged, a value for each second of a window.

A gauge stands from one reading to the next. What counts up is told by its rise between
two readings, spread over the time between them. A row is written when a value changed,
so the reading before is the one before in the table, whoever it was of. Counters that
only differ in a number (of a queue) are added up; so are those of cores and cgroups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nodescope.analysis.window import SECOND_NS, Window, overlapping
from nodescope.archive.reader import Segment
from nodescope.records import TABLES, Kind

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_COARSEST_S = 30  # readings further apart do not tell what came before what
_HOLE = 3  # times the usual distance: nobody looked in between
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class _Source:
    """Columns of a table that are metrics, of the subjects that other columns name."""

    table: str
    values: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()  # subjects that are told apart only to add them up
    only: str | None = None  # a column that must be empty: of the node itself


_SOURCES = (
    _Source("memory", ("value",), ("name",)),
    _Source("memory_cgroups", ("tracked", "visible", "dying")),
    _Source("pressure", ("some_us", "full_us"), ("resource",), only="cgroup"),
    _Source("softnet", ("processed", "dropped", "squeezed"), summed=("cpu",)),
    _Source(
        "nics", ("rx_packets", "tx_packets", "rx_dropped", "tx_errors", "carrier_changes"), ("nic",)
    ),
    _Source("nic_statistics", ("value",), ("nic", "name")),
    _Source("cgroups", ("throttled_us", "memory_limit_hits"), summed=("cgroup",)),
    _Source("cgroup_churn", ("made", "removed")),
)


def read_metrics(segments: Sequence[Segment], window: Window) -> Iterator[tuple[str, F64]]:
    """Names and values per second; a second in which nobody looked is not a number."""
    for source in _SOURCES:
        yield from _Reading(source, window).read(segments)


class _Reading:
    """One source, segment by segment."""

    def __init__(self, source: _Source, window: Window) -> None:
        self._source = source
        self._window = window
        self._length = max(1, window.length_ns // SECOND_NS)
        self._kinds = {column.name: column.kind for column in TABLES[source.table].columns}
        self._subjects: dict[tuple[str, ...], int] = {}
        self._names: list[str] = []  # of the metric, by subject
        self._last: dict[str, F64] = {name: np.empty(0) for name in source.values}
        self._times: list[I64] = []
        self._steps: dict[tuple[str, str], F64] = {}  # where a rate rises and falls
        self._levels: dict[tuple[str, str], list[tuple[I64, F64]]] = {}

    def read(self, segments: Sequence[Segment]) -> Iterator[tuple[str, F64]]:
        for segment in overlapping(segments, self._window):
            if self._source.table in segment.description.tables:
                self._take(segment)
        if not self._times:
            return
        times = np.unique(np.concatenate(self._times))
        steps = np.diff(times)
        usual = float(np.median(steps)) if len(steps) else _COARSEST_S + 1
        if usual > _COARSEST_S:
            return
        unseen = _unseen(times, steps, usual, self._length)
        for (name, column), changes in self._steps.items():
            yield self._told(name, column, np.cumsum(changes)[: self._length], unseen)
        for (name, column), parts in self._levels.items():
            second, values = (np.concatenate(each) for each in zip(*parts, strict=True))
            yield self._told(name, column, _hold(second, values, self._length), unseen)

    def _told(self, name: str, column: str, values: F64, unseen: Mask) -> tuple[str, F64]:
        values[unseen] = np.nan
        words = [self._source.table.replace("_", " "), name, column if column != "value" else ""]
        return " ".join(word for word in words if word), values

    def _take(self, segment: Segment) -> None:
        source = self._source
        keys = (*source.subjects, *source.summed)
        asked = ["time_ns", *keys, *source.values, *([source.only] if source.only else [])]
        table = segment.read(source.table, asked)
        time_ns = segment.wall_ns(table.column("time_ns").to_numpy())
        second = (time_ns - self._window.from_ns) // SECOND_NS
        kept = (second >= 0) & (second < self._length)
        if source.only:
            kept &= np.array([not each for each in table.column(source.only).to_pylist()], bool)
        subject = self._number(table, keys)[kept]
        second = second[kept]
        if not len(second):
            return
        order = np.lexsort((second, subject))
        subject, second = subject[order], second[order]
        before = self._times[-1][-1:] if self._times else second[:0]
        times = np.unique(second)
        since = np.concatenate((before, times))
        at = np.searchsorted(since, second) - 1
        since = np.where(at >= 0, since[np.maximum(at, 0)], second - 1)
        self._times.append(times)
        metrics = {name: number for number, name in enumerate(dict.fromkeys(self._names))}
        metric = np.array([metrics[name] for name in self._names])[subject]
        of = {name: metric == number for name, number in metrics.items()}
        for column in source.values:
            values = table.column(column).to_numpy(zero_copy_only=False).astype(np.float64)
            self._add(column, subject, of, since, second, values[kept][order])

    def _add(
        self, column: str, subject: I64, of: Mapping[str, Mask], since: I64, second: I64,
        values: F64,
    ) -> None:  # fmt: skip
        """The rows of a segment, by subject and time; `of` tells which are of which metric."""
        rises = self._rises(column, subject, values)
        for name, mine in of.items():
            if not mine.any():
                continue
            kind = _kind(self._source, name, self._kinds[column])
            if kind is Kind.GAUGE:
                levels = self._levels.setdefault((name, column), [])
                levels.append((second[mine], values[mine]))
                continue
            steps = self._steps.get((name, column))
            if steps is None:
                steps = self._steps[name, column] = np.zeros(self._length + 1)
            rise = np.nan_to_num(values if kind is Kind.COUNT else rises)
            some = np.flatnonzero(mine & (rise != 0))
            start = np.minimum(since[some] + 1, second[some])
            rate = rise[some] / (second[some] - start + 1)
            np.add.at(steps, start, rate)
            np.add.at(steps, second[some] + 1, -rate)

    def _rises(self, column: str, subject: I64, values: F64) -> F64:
        """How much each row is above the one before of its subject; a counter that began
        anew says nothing.
        """
        last = np.full(len(self._names), np.nan)
        last[: len(self._last[column])] = self._last[column]
        first = np.append(True, np.diff(subject) != 0)
        before = np.where(first, last[subject], np.append(np.nan, values[:-1]))
        last[subject] = values  # of several rows the last stays
        self._last[column] = last
        return np.maximum(np.nan_to_num(values - before), 0)

    def _number(self, table: Any, keys: Sequence[str]) -> I64:
        """The number of each row's subject; new ones get the next."""
        if not keys:
            self._know(())
            return np.zeros(table.num_rows, np.int64)
        codes, texts = zip(*(_codes(table.column(key)) for key in keys), strict=True)
        joint = codes[0]
        for code, text in zip(codes[1:], texts[1:], strict=True):
            joint = joint * len(text) + code
        _, first, inverse = np.unique(joint, return_index=True, return_inverse=True)
        found = [
            self._know(tuple(text[code[at]] for text, code in zip(texts, codes, strict=True)))
            for at in first.tolist()
        ]
        return np.array(found, np.int64)[inverse]

    def _know(self, key: tuple[str, ...]) -> int:
        number = self._subjects.setdefault(key, len(self._subjects))
        if number == len(self._names):
            told = zip(self._source.subjects, key, strict=False)
            self._names.append(
                " ".join(_NUMBER.sub("*", text) if kind == "name" else text for kind, text in told)
            )
        return number


def _codes(column: Any) -> tuple[I64, list[str]]:
    """A column as numbers into a list of texts."""
    if str(column.type).startswith("dictionary"):
        encoded = column.combine_chunks()
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
    values, codes = np.unique(column.to_numpy(), return_inverse=True)
    return codes.astype(np.int64), [str(each) for each in values.tolist()]


def _kind(source: _Source, name: str, kind: Kind) -> Kind:
    """`memory` holds both: what vmstat counts is written small, and no number of something."""
    if source.table == "memory" and name[:1].islower() and not name.startswith("nr_"):
        return Kind.COUNTER
    return kind


def _unseen(times: I64, steps: I64, usual: float, length: int) -> Mask:
    """Seconds that lie before, after, or in a hole between readings."""
    unseen = np.zeros(length, bool)
    unseen[: times[0]] = True
    unseen[times[-1] + 1 :] = True
    for at in np.flatnonzero(steps > _HOLE * max(usual, 1.0)).tolist():
        unseen[times[at] + 1 : times[at + 1]] = True
    return unseen


def _hold(second: I64, values: F64, length: int) -> F64:
    """The last value at each second."""
    at = np.searchsorted(second, np.arange(length), side="right") - 1
    held: F64 = np.where(at >= 0, values[np.maximum(at, 0)], np.nan)
    return held
