"""Which parts of a window were observed at all, for any table.

What was not observed is never said to be absent. `Coverage` tells the spans in which a
table was filled, or would have been had there been anything to tell; `NotObserved` is
what a question answers when it could not be asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from nodescope.archive.damage import parse_damage
from nodescope.archive.gaps import read_part_gaps
from nodescope.recording.gaps import read_noted_gaps
from nodescope.recording.part import Part, Parts, may_hold_events, surrounding
from nodescope.recording.window import Window
from nodescope.records import SAMPLE_TABLES, TABLES
from nodescope.records.recorder_tables import Gap


@dataclass(frozen=True, slots=True)
class NotObserved:
    """The answer to a question about something that nobody looked at."""

    what: str
    window: Window

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class DamagedTable:
    """A table that was recorded in a span and cannot be read. All tables of samples are one."""

    table: str
    file: str
    reason: str
    span: Window


@dataclass(frozen=True, slots=True)
class Coverage:
    """The spans of a window in which a table was observed, in order, none touching another.

    What is damaged was observed once and cannot be read: it is no span of these.
    """

    window: Window
    spans: tuple[Window, ...]
    damaged: tuple[DamagedTable, ...] = ()

    @property
    def observed_ns(self) -> int:
        """How much of the window was observed."""
        return sum(span.length_ns for span in self.spans)

    @property
    def complete(self) -> bool:
        """Return whether all of the window was observed."""
        return self.spans == (self.window,)

    @property
    def missing(self) -> tuple[Window, ...]:
        """The spans that were not observed."""
        return _subtract((self.window,), self.spans)

    def holds(self, time_ns: int) -> bool:
        """Decide whether a moment was observed."""
        return any(span.holds(time_ns) for span in self.spans)

    def __bool__(self) -> bool:
        return bool(self.spans)


def find_coverage(parts: Parts, table: str, window: Window) -> Coverage:
    """Return which spans of a window a table was observed in."""
    touched = surrounding(parts, window)
    if table == "events":
        touched += [p for p in parts if p not in touched and may_hold_events(p, window)]
    asked = _observers_by_run(touched, parts) if TABLES[table].observer else {}
    observed = {part.name for part in touched if _observes(part, table, asked)}
    spans = [_extent(part, table) for part in touched if part.name in observed]
    spans += _joints(touched, observed)
    gaps = [gap for gap in read_noted_gaps(parts, window) if _blinds(gap, table)]
    left = _subtract(_join(spans), [Window(gap.from_ns, gap.to_ns) for gap in gaps])
    sampled = "samples" if table in SAMPLE_TABLES else table
    damaged = tuple(each for each in find_damaged(parts, window) if each.table == sampled)
    return Coverage(window, _clip(left, window), damaged)


def find_damaged(parts: Parts, window: Window) -> list[DamagedTable]:
    """Return the tables of a window that were recorded and cannot be read, one for each file."""
    return [
        DamagedTable(gap.source, part.where(damage[0]), damage[1], _extent(part, gap.source))
        for part in parts
        if may_hold_events(part, window)
        for gap in read_part_gaps(part)
        if (damage := parse_damage(gap)) is not None
    ]


def _extent(part: Part, table: str) -> Window:
    """Return the time of a part; with events, also what logs remember of the time before."""
    since = part.description.wall_history_ns if table == "events" else None
    return Window(part.wall_from_ns if since is None else since, part.wall_to_ns + 1)


def _observes(part: Part, table: str, asked: dict[tuple[str, int], frozenset[str]]) -> bool:
    """Decide whether a part has the table, or its observer was asked and had nothing to tell."""
    tables = part.description.tables
    if table in tables or table == "events":
        return True
    if table in SAMPLE_TABLES:
        return takes_samples(part)
    observer = TABLES[table].observer
    return observer is not None and observer in asked.get(part.description.run, ())


def takes_samples(part: Part) -> bool:
    """Decide whether samples were taken in the time of a part.

    A recorder that samples an idle node has no sample; an import without any has no rate.
    """
    cost = part.description.cost
    return "samples" in part.description.tables or bool(cost is not None and cost.frequency_hz)


def _observers_by_run(touched: Parts, parts: Parts) -> dict[tuple[str, int], frozenset[str]]:
    """Return the observers that each run of a recorder asked: each tells what it cost.

    A part that is too young to tell is judged by another part of its run.
    """
    asked: dict[tuple[str, int], frozenset[str]] = {}
    for part in touched:
        if "source_costs" in part.description.tables:
            run = part.description.run
            asked[run] = asked.get(run, frozenset()) | _observers(part)
    for run in {part.description.run for part in touched} - asked.keys():
        sealed = (p for p in reversed(parts) if not p.is_open and p.description.run == run)
        telling = (part for part in sealed if "source_costs" in part.description.tables)
        asked[run] = next(map(_observers, telling), frozenset())
    return asked


def _observers(part: Part) -> frozenset[str]:
    """Return the observers that a part tells the cost of."""
    return frozenset(part.read("source_costs", ["source"]).column("source").to_pylist())


def _blinds(gap: Gap, table: str) -> bool:
    """Decide whether a gap is of the whole table: one core of many is not."""
    sources = {"all", table, TABLES[table].observer}
    if table in SAMPLE_TABLES:
        sources.add("samples")
    return gap.cpu is None and gap.lost is None and gap.source in sources


def _joints(parts: Parts, observed: Collection[str]) -> Iterator[Window]:
    """Yield the time between parts that one run of a recorder made: a segment's end is no hole."""
    ordered = sorted(parts, key=lambda part: part.wall_from_ns)
    for before, after in pairwise(ordered):
        both = before.name in observed and after.name in observed
        same = before.description.run == after.description.run
        if both and same and before.wall_to_ns < after.wall_from_ns:
            yield Window(before.wall_to_ns, after.wall_from_ns + 1)


def _join(spans: Iterable[Window]) -> tuple[Window, ...]:
    joined: list[Window] = []
    for span in sorted(spans, key=lambda each: each.from_ns):
        if joined and span.from_ns <= joined[-1].to_ns:
            joined[-1] = Window(joined[-1].from_ns, max(joined[-1].to_ns, span.to_ns))
        else:
            joined.append(span)
    return tuple(joined)


def _subtract(spans: Iterable[Window], holes: Iterable[Window]) -> tuple[Window, ...]:
    left = list(spans)
    for hole in holes:
        left = [
            Window(from_ns, to_ns)
            for span in left
            for from_ns, to_ns in (
                (span.from_ns, min(span.to_ns, hole.from_ns)),
                (max(span.from_ns, hole.to_ns), span.to_ns),
            )
            if from_ns < to_ns
        ]
        left.sort(key=lambda each: each.from_ns)
    return _join(left)


def _clip(spans: Iterable[Window], window: Window) -> tuple[Window, ...]:
    cut = (
        Window(max(span.from_ns, window.from_ns), min(span.to_ns, window.to_ns)) for span in spans
    )
    return tuple(span for span in cut if span.from_ns < span.to_ns)
