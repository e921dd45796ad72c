"""Everything of the node that is counted or gauged, a value for each second of a window.

A gauge stands from one reading to the next. What counts up is told by its rise between
two readings, spread over the time between them; a row is written only when a value
changed, so that time is never longer than the observer's interval. Counters that only
differ in a number (of a queue) are added up; so are those of cores and cgroups. What
never changes is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from nodescope.analysis.filter import number_values
from nodescope.arrays import F64, I32, I64
from nodescope.numbering import distinct, group
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Part
from nodescope.recording.read_ahead import read_ahead
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records import TABLES, ColumnKind
from nodescope.sources.network.driver_statistics import classify_statistic

_NUMBER = re.compile(r"\d+")
_AT_ONCE = 60_000  # rows: what is counted together
_FEW = 2_000  # rows of a table: decoding them takes less than handing them to another thread
_EXACT = 1e-9  # of the largest value: what adding and taking away leaves is nothing


@dataclass(frozen=True, slots=True)
class _Source:
    """Columns of a table that are metrics, of the subjects that other columns name."""

    table: str
    every_s: int  # how often its observer looks
    values: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()  # subjects that are told apart only to add them up
    only: str | None = None  # a column that must be empty: of the node itself


_SOURCES = (
    _Source("memory", 10, ("value",), ("name",)),
    _Source("memory_cgroups", 10, ("tracked", "visible", "dying")),
    _Source("pressure", 2, ("some_us", "full_us"), ("resource",), only="cgroup"),
    _Source("softnet", 1, ("processed", "dropped", "squeezed"), summed=("cpu",)),
    _Source(
        "nics",
        10,
        ("rx_packets", "tx_packets", "rx_dropped", "tx_errors", "carrier_changes"),
        ("nic",),
    ),
    _Source("nic_statistics", 10, ("value",), ("nic", "name")),
    _Source("cgroups", 10, ("throttled_us", "memory_limit_hits"), summed=("cgroup",)),
    _Source("cgroup_churn", 10, ("made", "removed")),
)


def read_metrics(recording: Recording, window: Window) -> Iterator[tuple[str, F64]]:
    """Names and values per second; a second that no segment covers is not a number."""
    length = max(1, window.length_ns // SECOND_NS)
    covered = np.zeros(length, bool)
    for segment in recording.overlapping(window):
        begin, end = (
            (at - window.from_ns) // SECOND_NS for at in (segment.wall_from_ns, segment.wall_to_ns)
        )
        covered[max(0, begin) : max(0, end + 1)] = True
    for source in _SOURCES:
        for name, values in _Reading(source, window).read(recording):
            values[~covered] = np.nan
            yield name, values


class _Reading:
    """One source, segment by segment."""

    def __init__(self, source: _Source, window: Window) -> None:
        self._source = source
        self._window = window
        self._length = max(1, window.length_ns // SECOND_NS)
        self._subjects: dict[tuple[str, ...], int] = {}
        self._metric: list[int] = []  # of each subject; -1: none
        self._texts: tuple[list[str], ...] = ()  # of the columns that name subjects …
        self._numbers: I64 = np.empty(0, np.int64)  # … and the subject of each combination of them
        self._names: dict[str, int] = {}
        self._last: dict[str, F64] = {}
        self._run: tuple[str, int] | None = None
        self._waiting: list[list[Any]] = []  # segment, look, second, apart, subject, values
        self._rows = 0
        self._steps: dict[tuple[int, str], F64] = {}  # where a rate rises and falls
        self._levels: dict[tuple[int, str], list[tuple[I64, F64]]] = {}
        kinds = {column.name: column.kind for column in TABLES[source.table].columns}
        self._kinds = {column: kinds[column] for column in source.values}

    def read(self, recording: Recording) -> Iterator[tuple[str, F64]]:
        source = self._source
        asked = [*source.subjects, *source.summed, *source.values]
        asked += [source.only] if source.only else []
        segments = [
            segment
            for segment in recording.overlapping(self._window)
            if source.table in segment.description.tables
        ]
        for segment, (table, looks, look) in _read_each(segments, source.table, asked):
            self._take(segment, table, looks, look)
        self._settle()
        titles = list(self._names)
        for (number, column), steps in self._steps.items():
            values = np.cumsum(steps)[: self._length]
            values[np.abs(values) < _EXACT * np.abs(values).max()] = 0.0
            yield self._title(titles[number], column), values
        for (number, column), parts in self._levels.items():
            values = _hold(parts, self._length)
            yield self._title(titles[number], column), values

    def _title(self, name: str, column: str) -> str:
        words = [self._source.table.replace("_", " "), name, column if column != "value" else ""]
        return " ".join(word for word in words if word)

    def _take(self, segment: Part, table: Any, looks: I64, look: I64) -> None:
        """Take a segment's rows; they are counted when some are together, or a run ends."""
        source = self._source
        start = segment.description.start
        if self._run != (start.boot_id, start.run_ns):  # counters may have begun anew
            self._settle()
            self._run, self._last = (start.boot_id, start.run_ns), {}
        second = (segment.wall_ns(looks) - self._window.from_ns) // SECOND_NS
        subject = self._number(table, (*source.subjects, *source.summed))
        inside = (second >= 0) & (second < self._length)
        kept = np.array(self._metric, np.int64)[subject] >= 0
        if not inside.all():
            kept &= inside[look]
        if source.only:
            kept &= np.array([not each for each in table.column(source.only).to_pylist()], bool)
        read = (table.column(column).to_numpy(zero_copy_only=False) for column in source.values)
        columns = [look, subject, *read]
        if not kept.all():
            rows = np.flatnonzero(kept)
            columns = [each[rows] for each in columns]
        look, subject, *values = columns
        asked = np.flatnonzero(np.bincount(look, minlength=len(looks)))
        apart = np.empty(len(looks), np.int64)
        apart[asked] = _since_before(looks[asked], source.every_s)
        part = np.full(len(look), len(self._waiting), np.int32)
        self._waiting.append([part, look, second[look], apart[look], subject, *values])
        self._rows += len(look)
        if self._rows >= _AT_ONCE:
            self._settle()

    def _settle(self) -> None:
        """Count the rows that were read, of segments of one run."""
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if not any(len(each[0]) for each in waiting):
            return
        part, look, second, apart, subject, *columns = (
            np.concatenate(each) for each in zip(*waiting, strict=True)
        )
        moving = {
            name: values
            for name, values in zip(self._source.values, columns, strict=True)
            if not self._stands(name, subject, values)
        }
        if not moving:
            return
        order = _order(subject, part, look)
        subject, second, apart = subject[order], second[order], apart[order]
        metric = np.array(self._metric, np.int64)[subject]
        for name, values in moving.items():
            self._add(name, subject, metric, second, apart, values[order].astype(np.float64))

    def _stands(self, column: str, subject: I64, values: Any) -> bool:
        """Decide whether a counter has one value, as before: most count what never happens."""
        if self._source.table == "memory" or self._kinds[column] is not ColumnKind.COUNTER:
            return False
        value = values.min()
        last = self._last_of(column)
        if value != values.max() or not (np.isnan(last) | (last == value)).all():
            return False
        last[subject] = value
        return True

    def _add(
        self, column: str, subject: I64, metric: I64, second: I64, apart: I64, values: F64
    ) -> None:
        """Rows of a segment, by subject and time; `apart` is how long ago one looked before."""
        kind = self._kinds[column]
        gauges = np.array([self._is_gauge(name, kind) for name in self._names], bool)
        gauge = gauges[metric] if gauges.any() else np.zeros(1, bool)
        for number, rows in _split(metric, np.flatnonzero(gauge & ~np.isnan(values))):
            self._levels.setdefault((number, column), []).append((second[rows], values[rows]))
        rise = (
            np.nan_to_num(values)
            if kind is ColumnKind.COUNT
            else self._rises(column, subject, values)
        )
        for number, rows in _split(metric, np.flatnonzero(~gauge & (rise != 0))):
            steps = self._steps.get((number, column))
            if steps is None:
                steps = self._steps[number, column] = np.zeros(self._length + 1)
            start = np.maximum(second[rows] - apart[rows] + 1, 0)
            rate = rise[rows] / (second[rows] - start + 1)
            np.add.at(steps, start, rate)
            np.add.at(steps, second[rows] + 1, -rate)

    def _is_gauge(self, name: str, kind: ColumnKind) -> bool:
        """`memory` holds both: what vmstat counts is written small, and no number of something."""
        if self._source.table == "memory":
            return not name[:1].islower() or name.startswith("nr_")
        return kind is ColumnKind.GAUGE

    def _rises(self, column: str, subject: I64, values: F64) -> F64:
        """How much each row is above the one before of its subject; a fall says nothing."""
        last = self._last_of(column)
        change = np.flatnonzero(subject[1:] != subject[:-1])
        first, final = np.append(0, change + 1), np.append(change, len(subject) - 1)
        before = np.empty_like(values)
        before[1:] = values[:-1]
        before[first] = last[subject[first]]
        last[subject[final]] = values[final]
        rise = values - before
        rise[~(rise > 0)] = 0  # also where one of both is not known
        return rise

    def _last_of(self, column: str) -> F64:
        """Return the last value of each subject, to be brought up to date."""
        known = self._last.get(column, np.empty(0))
        last = self._last[column] = np.full(len(self._subjects), np.nan)
        last[: len(known)] = known
        return last

    def _number(self, table: Any, keys: Sequence[str]) -> I64:
        """The number of each row's subject; new ones get the next."""
        if not keys:
            self._know(())
            return np.zeros(table.num_rows, np.int64)
        codes, texts = zip(*(_codes(table.column(key)) for key in keys), strict=True)
        joint = codes[0]
        for code, text in zip(codes[1:], texts[1:], strict=True):
            joint = joint * max(1, len(text)) + code
        # Segments mostly have the same texts, and then the same numbers.
        if self._texts != texts:
            size = prod(max(1, len(text)) for text in texts)
            self._texts, self._numbers = texts, np.full(size, -1, np.int64)
        for each in distinct(joint[self._numbers[joint] < 0]).tolist():
            key: tuple[str, ...] = ()
            rest = each
            for text in reversed(texts):
                rest, at = divmod(rest, max(1, len(text)))
                key = (text[at], *key)
            self._numbers[each] = self._know(key)
        numbers: I64 = self._numbers[joint]
        return numbers

    def _know(self, key: tuple[str, ...]) -> int:
        number = self._subjects.setdefault(key, len(self._subjects))
        if number == len(self._metric):
            named = dict(zip(self._source.subjects, key, strict=False))
            if self._source.table == "nic_statistics":
                # The others are read once a minute: too seldom to tell what came first.
                if not classify_statistic(named["name"]).trouble:
                    self._metric.append(-1)
                    return number
                named["name"] = _NUMBER.sub("*", named["name"])
            name = " ".join(named.values())
            self._metric.append(self._names.setdefault(name, len(self._names)))
        return number


def _read_each(
    segments: Sequence[Part], table: str, columns: Sequence[str]
) -> Iterator[tuple[Part, tuple[Any, I64, I64]]]:
    """Return each segment with what `_read_looks` returns of it; small tables without a thread."""
    if all(segment.description.tables[table].rows < _FEW for segment in segments):
        return ((segment, _read_looks(segment, table, columns)) for segment in segments)
    return read_ahead(segments, lambda part: _read_looks(part, table, columns))


def _read_looks(part: Part, table: str, columns: Sequence[str]) -> tuple[Any, I64, I64]:
    """Read a table; return it, the times at which its rows were read, and which each row has.

    These times are few, as many subjects are read at once.
    """
    found = part.read(table, ["time_ns", *columns])
    looks, _, look = group(found.column("time_ns").to_numpy())
    return found, looks, look


def _codes(column: Any) -> tuple[I64, list[str]]:
    """A column as numbers into a list of texts."""
    if str(column.type).startswith("dictionary"):
        encoded = column.combine_chunks()
        return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
    values, codes = number_values(column.to_numpy().astype(np.int64))
    return codes, [str(each) for each in values.tolist()]


def _since_before(looks: I64, every_s: int) -> I64:
    """Return how long before each look at a segment's subjects the one before was, in seconds.

    The first one counts as `every_s`, and none as longer.
    """
    since = (np.diff(looks, prepend=looks[:1]) + SECOND_NS // 2) // SECOND_NS
    return np.clip(np.where(since > 0, since, every_s), 1, every_s)


def _order(subject: I64, part: I32, look: I64) -> I64:
    """Return the order of rows by subject, segment and time."""
    # Segments come one after the other, mostly sorted by subject and time: a sort by radix of
    # the subjects alone then does.
    narrow = subject.astype(np.uint16) if subject.max(initial=0) < 1 << 16 else subject
    order = np.argsort(narrow, kind="stable")
    subject, part, look = subject[order], part[order], look[order]
    later = (subject[1:] != subject[:-1]) | (part[1:] != part[:-1]) | (look[1:] >= look[:-1])
    return order if later.all() else order[np.lexsort((look, part, subject))]


def _split(metric: I64, rows: I64) -> Iterator[tuple[int, I64]]:
    """Rows by metric, each in their order."""
    if not len(rows):
        return
    of_rows = metric[rows]
    if of_rows.min() == of_rows.max():
        yield int(of_rows[0]), rows
        return
    ordered = rows[np.argsort(of_rows, kind="stable")]
    for part in np.split(ordered, np.flatnonzero(np.diff(metric[ordered])) + 1):
        yield int(metric[part[0]]), part


def _hold(parts: Sequence[tuple[I64, F64]], length: int) -> F64:
    """The last value at each second."""
    second, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(second, kind="stable")
    at = np.searchsorted(second[order], np.arange(length), side="right") - 1
    held: F64 = np.where(at >= 0, values[order][np.maximum(at, 0)], np.nan)
    return held
