"""Events of a recording, on the wall clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from nodescope.recording.part import Parts, may_hold_events
from nodescope.recording.window import Window
from nodescope.records.event import Event, parse_event_details
from nodescope.records.event_details import PeggedCoreDetails


def read_events(parts: Parts, window: Window, kinds: Collection[str] = ()) -> Iterator[Event]:
    """Read what happened in the window, part by part in the order of time; all kinds if none."""
    names = ["time_ns", "kind", "subject", "message", "cpu", "details"]
    for part in parts:
        if not may_hold_events(part, window):
            continue
        table = part.read("events", names)
        times = part.wall_ns(table.column("time_ns").to_numpy())
        inside = np.flatnonzero((times >= window.from_ns) & (times < window.to_ns)).tolist()
        if inside:
            columns = [table.column(name).to_pylist() for name in names[1:]]
            for row in inside:
                kind, subject, message, cpu, text = (column[row] for column in columns)
                if kinds and kind not in kinds:
                    continue
                details = parse_event_details(kind, text)
                yield Event(int(times[row]), kind, subject, message, cpu, details)


def leave_out_superseded(events: Iterable[Event]) -> list[Event]:
    """Return events without reports that a core is still pegged, where a later one has the end."""
    listed = list(events)
    ended = {start for event in listed if (start := _pegged_since(event, ongoing=False))}
    return [event for event in listed if _pegged_since(event, ongoing=True) not in ended]


def _pegged_since(event: Event, *, ongoing: bool) -> tuple[str, int | None] | None:
    """Return which core is reported as pegged and since when; None for anything else."""
    details = event.details
    if not isinstance(details, PeggedCoreDetails) or details.ongoing is not ongoing:
        return None
    return event.subject, details.from_ns
