"""Events and gaps as columns of the archive."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.records.details import format_details
from nodescope.records.event import Event
from nodescope.records.recorder import Gap


def event_columns(events: Iterable[Event]) -> dict[str, list[object]]:
    """Return columns of `events`."""
    listed = list(events)
    return {
        "time_ns": [event.time_ns for event in listed],
        "kind": [event.kind for event in listed],
        "subject": [event.subject for event in listed],
        "message": [event.message for event in listed],
        "cpu": [event.cpu for event in listed],
        "details": [format_details(event.details) for event in listed],
    }


def gap_columns(gaps: Iterable[Gap]) -> dict[str, list[object]]:
    """Return columns of `gaps`."""
    listed = list(gaps)
    return {name: [getattr(gap, name) for gap in listed] for name in Gap.names()}
