"""What is asked: a route's parameters, the recording as it is now, and whether anybody waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from nodescope.analysis.filter import Filter
from nodescope.archive.description import Description
from nodescope.archive.reader import Segment
from nodescope.errors import UsageError
from nodescope.quantities import MILLISECOND_NS
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window, overlapping, read_parts
from nodescope.web.shelf import Shelf
from nodescope.web.snapshot import Snapshot


class Abandoned(Exception):
    """Nobody waits for the answer any more."""


class WatchedColumns(Segment):
    """A segment that asks, before each table is read, whether anybody still waits."""

    def __init__(self, segment: Segment, check: Callable[[], None]) -> None:
        self._segment = segment
        self._check = check
        self.directory = segment.directory
        self.is_open = segment.is_open

    @property
    def description(self) -> Description:
        return self._segment.description

    def _read(self, table: str, names: list[str]) -> Any:
        self._check()
        return self._segment._read(table, names)


@dataclass
class Question:
    """One request, as far as an answer is concerned."""

    values: Mapping[str, Any]
    snapshot: Snapshot
    shelf: Shelf
    check: Callable[[], None] = lambda: None
    show: Callable[[int, int], None] = lambda done, total: None

    @cached_property
    def asked(self) -> Window:
        """The window asked for, recorded or not; all of the recording if none was."""
        from_ns, to_ns = self.moment("from"), self.moment("to")
        known = self.snapshot.window
        window = Window(
            known.from_ns if from_ns is None else from_ns, known.to_ns if to_ns is None else to_ns
        )
        if window.to_ns <= window.from_ns:
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
        values = self.values
        return Filter(
            cpus=values.get("cpu"),
            pids=values.get("pid"),
            comms=values.get("comm") or (),
            cgroups=values.get("cgroup") or (),
            kernel=None if values.get("mode") is None else values["mode"] == "kernel",
            frame=values.get("frame"),
            without_frame=values.get("no_frame"),
        )

    @cached_property
    def segments(self) -> list[Segment]:
        """All of the recording, reading only while somebody waits."""
        return [WatchedColumns(segment, self.check) for segment in self.snapshot.segments]

    def overlapping(self, window: Window) -> list[Segment]:
        """The segments of a window, as the shelf knows them."""
        return overlapping(self.snapshot.segments, window)

    def parts(self) -> Iterator[SampleColumns]:
        """Samples of the window, segment by segment."""
        if self.window.length_ns:
            yield from read_parts(self.segments, self.window)

    @property
    def node(self) -> str:
        """What the node is called."""
        return str(self.snapshot.archive.info.node.get("name") or "node")


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
