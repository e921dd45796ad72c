"""Marks that wait in the archive's folder, into events.

A mark's file is removed when the segment that has its event is sealed. A recorder
that was killed before leaves both: the archive then tells which are told.
"""

from __future__ import annotations

import os
import time

from nodescope.archive.layout import MARKS_DIRECTORY
from nodescope.archive.marks import Mark, list_marks, mark_event, read_mark, remove_mark
from nodescope.clock import SystemClock, read_pair
from nodescope.errors import ArchiveError
from nodescope.ingest.observation import Observation
from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recorder.already_recorded import read_told_names
from nodescope.recorder.observer import Setting
from nodescope.records.event import Event
from nodescope.records.event_details import MarkDetails
from nodescope.sources.kernel_files import read_text

_SET_CLOCK_NS = HOUR_NS  # a wall clock may have been set meanwhile


class MarksObserver:
    """Looks each second whether the folder changed."""

    interval_ns = SECOND_NS
    patient = False

    def __init__(self, setting: Setting) -> None:
        self._root = setting.archive
        self._boot_id = read_text(setting.places.proc / "sys/kernel/random/boot_id")
        self._changed_ns: int | None = None
        self._told: set[str] | None = None

    def begin_segment(self) -> None:
        """Remove the files of marks that are sealed now."""
        for mark_id in self._told or ():
            remove_mark(self._root, mark_id)
        if self._told is not None:
            self._told.clear()

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        try:
            changed = os.stat(self._root / MARKS_DIRECTORY).st_mtime_ns
        except OSError:
            return said  # nobody marked anything yet
        if changed == self._changed_ns:
            return said
        # The clock of file times is coarse: a mark may come in the same tick as we look.
        self._changed_ns = changed if changed < time.time_ns() - SECOND_NS else None
        waiting = list_marks(self._root)
        if self._told is None:
            since_ns = _oldest_ns(waiting) - _SET_CLOCK_NS
            self._told = read_told_names(self._root, MarkDetails, lambda each: each.mark, since_ns)
        for mark_id in waiting:
            if mark_id in self._told:
                continue
            self._told.add(mark_id)
            try:
                mark = read_mark(self._root, mark_id)
            except ArchiveError as error:
                said.events.append(Event(now_ns, "source_degraded", "marks", str(error)))
                continue
            if mark is not None:
                said.events.append(self._event(mark))
        return said

    def _event(self, mark: Mark) -> Event:
        time_ns = mark.monotonic_ns
        if time_ns is None or mark.boot_id != self._boot_id:
            time_ns = mark.wall_ns - read_pair(SystemClock()).offset_ns
        return mark_event(mark, time_ns)

    def close(self) -> None:
        """There is nothing to let go of."""


def _oldest_ns(waiting: list[str]) -> int:
    """When the first of them was made: ids begin with the wall time."""
    numbers = (mark_id.partition("-")[0] for mark_id in waiting)
    return min((int(each) for each in numbers if each.isdecimal()), default=0)


def make(setting: Setting) -> MarksObserver:
    """The observer of the marks of this archive."""
    return MarksObserver(setting)
