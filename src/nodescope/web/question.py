"""A request: its parameters, the recording as it is now, and whether the client still waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from nodescope.analysis.filter import Filter, compile_filter
from nodescope.archive.description import Description
from nodescope.errors import UsageError
from nodescope.quantities import MILLISECOND_NS
from nodescope.recording.part import Part
from nodescope.recording.recording import Recording
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window, window_of
from nodescope.records.sample_filter import FILTER_OPTIONS, SampleFilter, parse_filter
from nodescope.records.view import Span
from nodescope.sources.places import Places
from nodescope.web.shelf import Shelf
from nodescope.web.snapshot import Snapshot

# A request's parameters, each as its own `parse` made it: routes know what they declared.
Values: TypeAlias = Mapping[str, Any]


class Abandoned(Exception):
    """Nobody waits for the answer any more."""


class WatchedPart:
    """A part that asks, before each table is read, whether anybody still waits."""

    def __init__(self, part: Part, check: Callable[[], None]) -> None:
        self._part = part
        self._check = check

    @property
    def is_open(self) -> bool:
        return self._part.is_open

    @property
    def name(self) -> str:
        return self._part.name

    @property
    def description(self) -> Description:
        return self._part.description

    @property
    def tick_ns(self) -> int:
        return self._part.tick_ns

    @property
    def wall_from_ns(self) -> int:
        return self._part.wall_from_ns

    @property
    def wall_to_ns(self) -> int:
        return self._part.wall_to_ns

    def wall_ns(self, monotonic_ns: Any) -> Any:
        return self._part.wall_ns(monotonic_ns)

    def read(self, table: str, columns: Sequence[str] | None = None) -> Any:
        self._check()
        return self._part.read(table, columns)

    def where(self, table: str) -> str:
        return self._part.where(table)


@dataclass
class Question:
    """One request, as far as an answer is concerned."""

    values: Values
    snapshot: Snapshot
    shelf: Shelf
    check: Callable[[], None] = lambda: None
    show: Callable[[int, int], None] = lambda done, total: None
    places: Places = field(default_factory=Places)  # of the node that the server runs on

    @cached_property
    def asked(self) -> Window:
        """The window asked for, recorded or not; all of the recording if none was."""
        window = window_of(Span(self.moment("from"), self.moment("to")), self.snapshot.window)
        if window.length_ns <= 0:
            raise UsageError("the window ends before it starts", hint="from is the earlier one")
        return window

    def moment(self, name: str) -> int | None:
        """A time that was asked for, however it was written."""
        found: int | None = self.values.get(f"{name}_ms")
        return self.values.get(name) if found is None else found

    @cached_property
    def window(self) -> Window:
        """The part of it that was recorded; it may be empty."""
        clipped = self.snapshot.extent.clip(self.asked)
        from_ns = max(0, clipped.from_ns)
        return Window(from_ns, max(from_ns, clipped.to_ns))

    @cached_property
    def filter(self) -> Filter:
        """Which samples it is about."""
        return compile_filter(self.samples)

    @cached_property
    def samples(self) -> SampleFilter:
        """Which samples are asked for."""
        given = {option.name: self.values.get(option.name) for option in FILTER_OPTIONS}
        chosen = parse_filter({name: [text] for name, text in given.items() if text is not None})
        self.recording.check_cores(chosen.cpus)
        return chosen

    @cached_property
    def recording(self) -> Recording:
        """All of the recording, read only while somebody waits."""
        parts = [WatchedPart(part, self.check) for part in self.snapshot.segments]
        known = self.snapshot.recording
        return Recording(parts, known.node, known.lost, known.hours)

    def overlapping(self, window: Window) -> list[Part]:
        """Return the parts of a window as the shelf knows them."""
        return self.snapshot.recording.overlapping(window)

    def parts(self, roll_up: str | None = None) -> Iterator[SampleColumns]:
        """Read the samples of the window by segment or, of a roll-up, by hour."""
        if self.window.length_ns:
            yield from self.recording.samples(self.window, roll_up)

    @property
    def node(self) -> str:
        """Return the name of the node."""
        return self.recording.node_name


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: bytes of a kind."""

    body: bytes
    media_type: str = "application/json"
    filename: str | None = None  # to be saved under
    path: Path | None = None  # of a file with it, instead of `body`; taken away when sent
    whole: bool = True  # else the next asker may get more: not to be kept


def to_ms(time_ns: int) -> float:
    """Milliseconds since the epoch: a double keeps them to a fifth of a microsecond."""
    return time_ns / MILLISECOND_NS
