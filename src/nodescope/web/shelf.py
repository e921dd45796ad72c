"""Reduced forms of sealed segments, kept: core strips, tracks, events, processes by second.

Sealed segments never change, so each is reduced once; the open one is reduced again
with every snapshot. A thread fills the shelf at the start, the newest first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.analysis.core_strips import Strip, join_strips, make_strip
from nodescope.analysis.process_lanes import ProcessSeconds, count_process_seconds
from nodescope.analysis.tracks import Readings, read_tracks
from nodescope.archive.memory import give_memory_back
from nodescope.errors import ArchiveError
from nodescope.recording.core_readings import STATES
from nodescope.recording.events import leave_out_superseded, read_events
from nodescope.recording.part import Part
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.web.cache import Cache

MOST_BYTES = 160 << 20
MOST_PROCESS_BYTES = 32 << 20
_EVENT_BYTES = 900  # of one in memory, about
_WHOLE = Window(-(1 << 62), 1 << 62)


@dataclass(frozen=True, slots=True)
class Reduced:
    """One segment, as far as the timeline shows it."""

    strip: Strip
    tracks: dict[str, Readings]
    events: list[Event]

    @property
    def bytes(self) -> int:
        """Estimate the memory it takes."""
        numbers = sum(each.bytes for each in self.tracks.values())
        return self.strip.bytes + numbers + _EVENT_BYTES * len(self.events)


def reduce_segment(segment: Part) -> Reduced:
    """Read what the timeline shows of a segment."""
    table = segment.read("cores", ["cpu", "time_ns", *STATES])
    if len(table):
        ticks = np.stack([table.column(state).to_numpy() for state in STATES])
        times = segment.wall_ns(table.column("time_ns").to_numpy())
        strip = make_strip(table.column("cpu").to_numpy(), times, ticks)
    else:
        empty = np.empty(0, np.int64)
        strip = make_strip(empty, empty, np.empty((len(STATES), 0), np.int64))
    return Reduced(
        strip, read_tracks(segment), leave_out_superseded(read_events([segment], _WHOLE))
    )


class Shelf:
    """Reduced segments of one recording."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._sealed: Cache[Reduced] = Cache(most_bytes, lambda reduced: reduced.bytes)
        self._joints: Cache[tuple[Strip | None]] = Cache(16 << 20, lambda _: 4096)
        self._processes: Cache[ProcessSeconds] = Cache(MOST_PROCESS_BYTES, lambda each: each.bytes)
        self._of: object = None
        self._lock = threading.Lock()

    def belongs_to(self, identity: object) -> None:
        """Forget everything if it was of another recording."""
        with self._lock:
            if identity != self._of:
                self._sealed.clear()
                self._joints.clear()
                self._processes.clear()
                self._of = identity

    def has(self, segment: Part) -> bool:
        """Return whether it is there already."""
        return segment.name in self._sealed

    def take(self, segment: Part) -> Reduced:
        """A segment reduced."""
        if segment.is_open:
            # Kept on the segment itself: the next snapshot has a new one.
            kept: Reduced | None = vars(segment).get("_reduced")
            if kept is None:
                kept = vars(segment)["_reduced"] = reduce_segment(segment)
            return kept
        return self._sealed.get(segment.name, lambda: reduce_segment(segment))

    def has_processes(self, segment: Part) -> bool:
        """Return whether the processes of a segment are counted already."""
        return segment.name in self._processes

    def take_processes(self, segment: Part) -> ProcessSeconds:
        """The processes of a segment by second."""
        if segment.is_open:
            return count_process_seconds(segment)
        return self._processes.get(segment.name, lambda: count_process_seconds(segment))

    def strips(self, segments: Sequence[Part]) -> Iterator[Strip]:
        """Strips of neighbouring segments, with the readings between two of one run."""
        before: Part | None = None
        for segment in segments:
            if before is not None and _one_run(before, segment):
                joint = self._joint(before, segment)
                if joint is not None:
                    yield joint
            yield self.take(segment).strip
            before = segment

    def _joint(self, before: Part, after: Part) -> Strip | None:
        def make() -> tuple[Strip | None]:
            return (join_strips(self.take(before).strip, self.take(after).strip),)

        if after.is_open:
            return make()[0]
        return self._joints.get((before.name, after.name), make)[0]

    def fill(
        self,
        segments: Sequence[Part],
        stopped: threading.Event,
        show: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        """Reduce all of them, the newest first; a damaged one is whoever asks for it's to tell."""
        sealed = [segment for segment in reversed(segments) if not segment.is_open]
        for done, segment in enumerate(sealed):
            if stopped.is_set():
                return
            show(done, len(sealed))
            try:
                self.take(segment)
            except ArchiveError:
                continue
        show(len(sealed), len(sealed))
        give_memory_back()


def _one_run(before: Part, after: Part) -> bool:
    first, second = before.description.start, after.description.start
    return (first.boot_id, first.run_ns) == (second.boot_id, second.run_ns)
