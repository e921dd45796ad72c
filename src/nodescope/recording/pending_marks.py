"""Marks that no recorder has taken yet, among the events of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from nodescope.archive.marks import list_marks, mark_event, read_mark
from nodescope.errors import ArchiveError
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import MarkDetails


def read_waiting(root: Path) -> list[Event]:
    """The marks that wait in an archive's folder; what makes no sense is the recorder's to tell."""
    events = []
    for mark_id in list_marks(root):
        try:
            mark = read_mark(root, mark_id)
        except ArchiveError:
            continue
        if mark is not None:
            events.append(mark_event(mark, mark.wall_ns))
    return events


def with_waiting(
    events: Sequence[Event], waiting: Iterable[Event], window: Window, *, to_now: bool
) -> list[Event]:
    """Recorded events and waiting ones of the window, in the order of time.

    `to_now` is for a window that ends where the recording does: what was marked
    since then belongs to it.
    """
    told = {event.get(MarkDetails).mark for event in events}
    new = [
        event
        for event in waiting
        if event.get(MarkDetails).mark not in told
        and event.time_ns >= window.from_ns
        and (to_now or event.time_ns < window.to_ns)
    ]
    return sorted([*events, *new], key=lambda event: event.time_ns) if new else list(events)
