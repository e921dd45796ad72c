"""Gaps and events on their way to the archive, said aloud where a person should know."""

from __future__ import annotations

import json
from collections.abc import Callable

from nodescope.archive.gaps import merge_gaps
from nodescope.recorder.observation import Event
from nodescope.records import EVENT_KINDS
from nodescope.records.recorder import Gap


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
        self, time_ns: int, kind: str, subject: str, message: str, *, loud: bool = False
    ) -> None:
        """Something happened."""
        self.add(Event(time_ns, kind, subject, message, loud=loud))

    def add(self, event: Event) -> None:
        """Something happened, as an observer says it."""
        if event.kind not in EVENT_KINDS:
            raise ValueError(f"{event.kind!r} is not a declared kind of event")
        self._events.append(event)
        if EVENT_KINDS[event.kind].serious:
            self._serious.append(event)
        if event.loud:
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

    def take_new_rows(self) -> dict[str, dict[str, list[object]]]:
        """The rows since the last call, by table."""
        rows: dict[str, dict[str, list[object]]] = {}
        if self._gaps:
            gaps = merge_gaps(self._gaps)
            rows["gaps"] = {name: [getattr(gap, name) for gap in gaps] for name in Gap.names()}
        if self._events:
            rows["events"] = {
                name: [getattr(event, name) for event in self._events]
                for name in ("time_ns", "kind", "subject", "message", "cpu")
            }
            rows["events"]["details"] = [
                json.dumps(event.details, ensure_ascii=False) if event.details else None
                for event in self._events
            ]
        self._gaps = []
        self._events = []
        return rows
