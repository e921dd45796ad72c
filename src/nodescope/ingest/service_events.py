"""Reports of services as events, from a journal that is followed or imported alike.

The first line of a kind is an event at once. Of the lines of the same kind and service in the
minute after it one more event is made, at the last of them, with their number: a flood of failing
probes stays two events a minute.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.ingest.clean_text import clean_text
from nodescope.quantities import SECOND_NS
from nodescope.records.details import read_details
from nodescope.records.event import Event, details_of_kind
from nodescope.records.trouble_details import ServiceReportDetails
from nodescope.sources.systemd.service_reports import (
    ServiceReport,
    parse_refusal,
    parse_report,
    service_of,
)

_MINUTE_NS = 60 * SECOND_NS
_MESSAGE = 500
_OF_UNITS = (".service", ".scope", ".socket", ".mount")
# Programs that log by another name than that of their unit
_UNITS = {"dockerd": "docker", "chrony": "chronyd"}


@dataclass(slots=True)
class _Minute:
    """The reports of one kind and service since the last event of them."""

    from_ns: int
    held: Event | None = None  # the latest that made no event
    times: int = 0


class ServiceEvents:
    """Makes events of the lines of services, given in their order."""

    def __init__(self) -> None:
        self._minutes: dict[tuple[str, str], _Minute] = {}

    def take(self, time_ns: int, unit: str, text: str) -> list[Event] | None:
        """Return the events of a line, which may be none yet; None if it reports nothing."""
        service = service_of(unit)
        report = None if service is None else parse_report(service, text)
        if service is None or report is None:
            report = parse_refusal(text)
        if report is None:
            return None
        event = _event(time_ns, service or unit, report, text)
        key = event.kind, event.subject
        minute = self._minutes.get(key)
        if minute is not None and 0 <= time_ns - minute.from_ns < _MINUTE_NS:
            minute.held, minute.times = event, minute.times + 1
            return []
        ended = self._end(key)
        self._minutes[key] = _Minute(time_ns)
        return [*ended, event]

    def flush(self, now_ns: int | None = None) -> list[Event]:
        """Return the events of minutes that are over; of all if no time is given."""
        over = [
            key
            for key, minute in self._minutes.items()
            if now_ns is None or now_ns - minute.from_ns >= _MINUTE_NS
        ]
        return [event for key in over for event in self._end(key)]

    def _end(self, key: tuple[str, str]) -> list[Event]:
        minute = self._minutes.pop(key, None)
        if minute is None or minute.held is None:
            return []
        event = minute.held
        if isinstance(event.details, ServiceReportDetails):
            counted = event.details.to_json() | {"times": minute.times}
            details = read_details(ServiceReportDetails, counted)
            event = Event(event.time_ns, event.kind, event.subject, event.message, details=details)
        return [event]


def _event(time_ns: int, service: str, report: ServiceReport, text: str) -> Event:
    """Return the event of a report; a program that is known by its name alone is no unit."""
    known = service_of(service) is not None
    unit = f"{_UNITS.get(service, service)}.service" if known else service
    found = {name: _clean(value) for name, value in report.details.items()}
    declared = details_of_kind(report.kind)
    if issubclass(declared, ServiceReportDetails) and unit.endswith(_OF_UNITS):
        found["unit"] = unit
    message = clean_text(text, _MESSAGE)
    subject = clean_text(report.about, 255) or unit
    return Event(time_ns, report.kind, subject, message, details=read_details(declared, found))


def _clean(value: str | int | float | bool) -> str | int | float | bool:
    return clean_text(value) if isinstance(value, str) else value
