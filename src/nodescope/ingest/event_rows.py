"""Events as rows of `events`."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.records.details import format_details
from nodescope.records.event import Event
from nodescope.records.recorder_tables import EventRow


def event_rows(events: Iterable[Event]) -> list[EventRow]:
    """Return the rows of events."""
    return [
        EventRow(
            time_ns=event.time_ns,
            kind=event.kind,
            subject=event.subject,
            message=event.message,
            cpu=event.cpu,
            details=format_details(event.details),
        )
        for event in events
    ]
