"""Events of a recording, on the wall clock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nodescope.recording.part import Parts, may_hold_events
from nodescope.recording.window import Window


@dataclass(frozen=True, slots=True)
class Event:
    """One row of `events`, on the wall clock."""

    time_ns: int
    kind: str
    subject: str
    message: str
    cpu: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


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
                kind, subject, message, cpu, details = (column[row] for column in columns)
                yield Event(int(times[row]), kind, subject, message, cpu, _parse_details(details))


def _parse_details(text: str | None) -> dict[str, Any]:
    """Return the details of an event; an archive may be hostile, so nothing is taken on trust."""
    if text is None:
        return {}
    try:
        details = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return details if isinstance(details, dict) else {}
