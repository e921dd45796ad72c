"""Events of a recording, on the wall clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nodescope.recording.part import Parts, may_hold_events
from nodescope.recording.window import Window
from nodescope.records.event import Event, parse_event_details


def read_events(parts: Parts, window: Window) -> Iterator[Event]:
    """Read what happened in the window, part by part in the order of time."""
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
                details = parse_event_details(kind, text)
                yield Event(int(times[row]), kind, subject, message, cpu, details)
