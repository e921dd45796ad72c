"""An event: something that happened, at its time."""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.records.details import NOTHING, DeclaredDetails, Details, parse_details
from nodescope.records.event_kinds import EVENT_KINDS


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `kind` is one of `EVENT_KINDS`, and declares the details.

    Its time is on the clock of whoever has the event: the node's monotonic clock while it
    is recorded, a file's own clock while it is imported, the wall clock once it is read.
    """

    time_ns: int
    kind: str
    subject: str
    message: str
    cpu: int | None = None
    details: Details = NOTHING

    def get(self, declared: type[DeclaredDetails]) -> DeclaredDetails:
        """Return the details as a class; empty ones if this kind has others."""
        return details_as(self.details, declared)


def details_as(details: Details, declared: type[DeclaredDetails]) -> DeclaredDetails:
    """Return details as a class they may be of; empty ones if they are of another."""
    return details if isinstance(details, declared) else declared()


def details_of_kind(kind: str) -> type[Details]:
    """Return the class of details that a kind declares; the bare one for an unknown kind."""
    known = EVENT_KINDS.get(kind)
    return Details if known is None else known.details


def parse_event_details(kind: str, text: str | None) -> Details:
    """Return the details of an event of a kind, as the archive stores them."""
    return parse_details(details_of_kind(kind), text)
