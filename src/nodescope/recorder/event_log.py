"""Gaps and events on their way to the archive; what a person should know is reported at once."""

from __future__ import annotations

from collections.abc import Callable

from nodescope.archive.gaps import merge_gaps
from nodescope.ingest.event_rows import event_rows
from nodescope.records.columns import Columns, columns_by_table
from nodescope.records.event import Event
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.recorder_tables import Gap


class EventLog:
    """Collects rows of `gaps` and `events`; a message is said aloud once."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._said: set[str] = set()
        self._gaps: list[Gap] = []
        self._events: list[Event] = []
        self._serious: list[Event] = []

    def gap(
        self,
        from_ns: int,
        to_ns: int,
        source: str,
        reason: str,
        *,
        cpu: int | None = None,
        lost: int | None = None,
        loud: bool = False,
    ) -> None:
        """Something was not seen. Touching gaps of one kind become one."""
        self._gaps.append(
            Gap(from_ns=from_ns, to_ns=to_ns, source=source, cpu=cpu, lost=lost, reason=reason)
        )
        if loud:
            self._say(f"{source}: {reason}")

    def event(
        self, time_ns: int, kind: str, subject: str, message: str, *, loud: bool | None = None
    ) -> None:
        """Record an event of the recorder itself."""
        self.add(Event(time_ns, kind, subject, message), loud=loud)

    def add(self, event: Event, *, loud: bool | None = None) -> None:
        """Record an event, and report it if its kind is loud; `loud` decides otherwise."""
        kind = EVENT_KINDS.get(event.kind)
        if kind is None:
            raise ValueError(f"{event.kind!r} is not a declared kind of event")
        if not issubclass(kind.details, type(event.details)):  # less than declared is fine
            raise ValueError(f"{event.details!r} are not the details of {event.kind}")
        self._events.append(event)
        if kind.serious:
            self._serious.append(event)
        if kind.loud if loud is None else loud:
            self._say(f"{event.subject}: {event.message}")

    def take_serious(self) -> list[Event]:
        """The serious events since the last call."""
        serious, self._serious = self._serious, []
        return serious

    def _say(self, message: str) -> None:
        if message not in self._said:
            if len(self._said) > 1000:
                self._said.clear()
            self._said.add(message)
            self._report(message)

    def take_new_rows(self) -> dict[str, Columns]:
        """Return the rows since the last call, as columns by table."""
        rows = columns_by_table([*merge_gaps(self._gaps), *event_rows(self._events)])
        self._gaps = []
        self._events = []
        return rows
