"""A window of wall time on a recording: which segments it touches, and what they hold.

Segments are handed out one by one and forgotten, so that a window of twelve
hours takes the memory of one segment. The open segment is computed when it is
looked at; a window that ends before it started leaves it alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from nodescope.archive.layout import parse_opened_ns
from nodescope.archive.reader import Segment
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES, CoreReadings
from nodescope.recording.sample_columns import SampleColumns

NEIGHBOUR_NS = 10 * SECOND_NS  # a rate at the edge of a window needs the reading beyond it


@dataclass(frozen=True, slots=True)
class Window:
    """From one wall time to another, the second excluded."""

    from_ns: int
    to_ns: int

    @property
    def length_ns(self) -> int:
        return self.to_ns - self.from_ns

    def widened(self, by_ns: int) -> Window:
        """The same with a margin on both sides."""
        return Window(self.from_ns - by_ns, self.to_ns + by_ns)


@dataclass(frozen=True, slots=True)
class Event:
    """One row of `events`, on the wall clock."""

    time_ns: int
    kind: str
    subject: str
    message: str
    cpu: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Recorded(Protocol):
    """A part of a recording, as far as time is concerned."""

    @property
    def is_open(self) -> bool:
        """Whether it still grows."""

    @property
    def wall_from_ns(self) -> int:
        """When it starts."""

    @property
    def wall_to_ns(self) -> int:
        """The last moment of it."""


class TimeExtent:
    """From when to when a recording goes; its end is looked up only if asked for."""

    def __init__(self, segments: Sequence[Recorded]) -> None:
        self._sealed = [segment for segment in segments if not segment.is_open]
        self._open = [segment for segment in segments if segment.is_open]

    @cached_property
    def from_ns(self) -> int:
        """When it starts."""
        return min(segment.wall_from_ns for segment in self._sealed or self._open)

    @cached_property
    def sealed_to_ns(self) -> int:
        """When what is sealed ends; 0 if nothing is."""
        return max((segment.wall_to_ns for segment in self._sealed), default=0)

    @cached_property
    def to_ns(self) -> int:
        """The moment after the last one recorded."""
        ends = [segment.wall_to_ns for segment in self._open]
        return max([self.sealed_to_ns, *ends]) + 1

    def clip(self, window: Window) -> Window:
        """The part of a window that was recorded; it may be empty."""
        to_ns = window.to_ns
        if to_ns > self.sealed_to_ns:
            to_ns = min(to_ns, self.to_ns)
        return Window(max(window.from_ns, self.from_ns), to_ns)


def find_history(segments: Sequence[Segment]) -> Window:
    """The time before the recording of which it has events: what the kernel's log remembered."""
    from_ns = TimeExtent(segments).from_ns
    told = (segment.description.wall_history_ns for segment in segments)
    return Window(min([from_ns, *(since for since in told if since is not None)]), from_ns)


def overlapping(segments: Sequence[Segment], window: Window) -> list[Segment]:
    """The segments that may hold something of the window."""
    return [segment for segment in segments if _overlaps(segment, window)]


def may_tell(segment: Segment, window: Window) -> bool:
    """Whether it may hold events of the window, also of before it was recorded."""
    return _overlaps(segment, window) or _remembers(segment, window)


def _overlaps(segment: Segment, window: Window) -> bool:
    if segment.is_open and window.to_ns <= parse_opened_ns(segment.name):
        return False
    return segment.wall_from_ns < window.to_ns and segment.wall_to_ns >= window.from_ns


def _remembers(segment: Segment, window: Window) -> bool:
    """Whether it may hold events of the window from before the recorder ran."""
    since = segment.description.wall_history_ns
    return since is not None and since < window.to_ns and window.from_ns < segment.wall_from_ns


def _parse_details(text: str | None) -> dict[str, Any]:
    """The details of an event; an archive may be hostile, so nothing is taken on trust."""
    if text is None:
        return {}
    try:
        details = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return details if isinstance(details, dict) else {}


def read_parts(segments: Sequence[Segment], window: Window) -> Iterator[SampleColumns]:
    """The samples of a window, segment by segment."""
    for segment in overlapping(segments, window):
        yield SampleColumns(segment, window.from_ns, window.to_ns)


def read_cores(segments: Sequence[Segment], window: Window) -> Iterator[CoreReadings]:
    """Readings of `/proc/stat`, from the one before the window to the one after.

    Each part starts with the last reading of the part before, if the same run of
    the recorder made both: a segment's end is no hole.
    """
    wide = window.widened(NEIGHBOUR_NS)
    before: CoreReadings | None = None
    run: tuple[str, int] | None = None
    for segment in overlapping(segments, wide):
        start = segment.description.start
        same = run == (start.boot_id, start.run_ns)
        run = (start.boot_id, start.run_ns)
        part = _read_readings(segment, wide)
        if same and before is not None and len(before.cpu):
            part = _joined(before, part)
        if len(part.cpu):
            yield part
            last = np.flatnonzero(np.append(np.diff(part.cpu) != 0, True))
            before = CoreReadings(part.cpu[last], part.time_ns[last], part.ticks[last])


def count_cores(segments: Sequence[Segment], window: Window) -> int:
    """How many cores the window's first readings are of."""
    for segment in overlapping(segments, window):
        cpu = segment.read("cores", ["cpu"]).column("cpu").to_numpy()
        if len(cpu):
            return len(np.unique(cpu))
    return 1


def _read_readings(segment: Segment, window: Window) -> CoreReadings:
    table = segment.read("cores", ["cpu", "time_ns", *STATES])
    column = {name: table.column(name).to_numpy().astype(np.int64) for name in table.column_names}
    time_ns = segment.wall_ns(column["time_ns"])
    inside = (time_ns >= window.from_ns) & (time_ns < window.to_ns)
    ticks = np.stack([column[state][inside] for state in STATES], axis=1)
    return CoreReadings(column["cpu"][inside], time_ns[inside], ticks)


def _joined(before: CoreReadings, part: CoreReadings) -> CoreReadings:
    cpu = np.concatenate((before.cpu, part.cpu))
    time_ns = np.concatenate((before.time_ns, part.time_ns))
    ticks = np.concatenate((before.ticks, part.ticks))
    order = np.lexsort((time_ns, cpu))
    return CoreReadings(cpu[order], time_ns[order], ticks[order])


def read_events(segments: Sequence[Segment], window: Window) -> Iterator[Event]:
    """What happened in the window, segment by segment in the order of time."""
    names = ["time_ns", "kind", "subject", "message", "cpu", "details"]
    for segment in segments:
        if not may_tell(segment, window):
            continue
        table = segment.read("events", names)
        times = segment.wall_ns(table.column("time_ns").to_numpy())
        inside = np.flatnonzero((times >= window.from_ns) & (times < window.to_ns)).tolist()
        if inside:
            columns = [table.column(name).to_pylist() for name in names[1:]]
            for row in inside:
                kind, subject, message, cpu, details = (column[row] for column in columns)
                yield Event(int(times[row]), kind, subject, message, cpu, _parse_details(details))
