"""Events and gaps as columns of the archive."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.records.details import format_details
from nodescope.records.event import Event
from nodescope.records.recorder import Gap


def event_columns(events: Iterable[Event]) -> dict[str, list[object]]:
    """Return columns of `events`."""
    listed = list(events)
    columns: dict[str, list[object]] = {
        name: [getattr(event, name) for event in listed]
        for name in ("time_ns", "kind", "subject", "message", "cpu")
    }
    columns["details"] = [format_details(event.details) for event in listed]
    return columns


def gap_columns(gaps: Iterable[Gap]) -> dict[str, list[object]]:
    """Return columns of `gaps`."""
    listed = list(gaps)
    return {name: [getattr(gap, name) for gap in listed] for name in Gap.names()}
