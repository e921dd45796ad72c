"""Lines of imported logs as the events that a recorder would have made of them.

A line of the kernel's log that says what went wrong gets its kind, core and
details by the rules of `sources.kernel_messages`, and what systemd says of its
units by its message ids. Every other line stays one: `kernel` or `journal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodescope.ingest.clean_text import clean_text
from nodescope.ingest.parsed import Event
from nodescope.judgement.unit_loops import UnitLoops
from nodescope.sources.kernel_log.messages import KernelMessage, classify, join
from nodescope.sources.systemd.happenings import CHOSEN, parse_message
from nodescope.sources.systemd.journal import JournalMessage as Entry

KERNEL, JOURNAL = "kernel", "journal"
_JOIN_NS = 2_000_000_000  # what belongs together is said within that
_MAX_FIELD = 255
_UNIT_FIELDS = (
    "UNIT", "INVOCATION_ID", "_PID", "MESSAGE_ID", "UNIT_RESULT", "N_RESTARTS", "JOB_TYPE",
    "JOB_RESULT", "JOB_ID", "EXIT_CODE", "EXIT_STATUS",
)  # fmt: skip


@dataclass(slots=True)
class _Last:
    message: KernelMessage
    line: Event
    extra: Mapping[str, Any]
    events: list[Event]  # the batch it stands in
    at: int


class KernelEvents:
    """Adds the lines of one log to batches of events."""

    def __init__(self) -> None:
        self._last: _Last | None = None

    def add(
        self,
        events: list[Event],
        line: Event,
        *,
        sequence: int | None = None,
        by_user: bool = False,
    ) -> None:
        """Add a line; one that goes on with an earlier one also completes that."""
        last = self._last
        if last is not None and line.time_ns - last.line.time_ns <= _JOIN_NS:
            joined = join(last.message, line.message)
            if joined is not None:
                last.message = joined
                if last.events is events:
                    events[last.at] = _classified(last.line, joined, last.extra)
                events.append(line)
                return
        message = classify(line.message)
        if message is not None:
            extra: dict[str, Any] = {} if sequence is None else {"sequence": sequence}
            if by_user:
                extra["user"] = True
            self._last = _Last(message, line, extra, events, len(events))
            line = _classified(line, message, extra)
        events.append(line)


def _classified(line: Event, message: KernelMessage, extra: Mapping[str, Any]) -> Event:
    details: dict[str, Any] = {
        name: value
        for name in ("driver", "device", "interface", "queue")
        if (value := getattr(message, name)) is not None
    }
    subject = clean_text(message.subject, _MAX_FIELD) or line.subject
    return line._replace(
        kind=message.kind,
        subject=subject,
        message=line.message.partition("\\n")[0],  # the rest is in the details
        cpu=message.cpu,
        details={**details, **message.details, **extra},
    )


class UnitEvents:
    """Adds what systemd says of its units, completed by what it said before."""

    def __init__(self) -> None:
        self._loops = UnitLoops()

    def add(self, events: list[Event], line: Event, field: Callable[[str], str]) -> None:
        """Add an entry of the journal, whose fields `field` gives."""
        happening = None
        if any(field(name) in values for name, values in CHOSEN.items()):
            fields = {name: field(name)[:_MAX_FIELD] for name in _UNIT_FIELDS}
            fields = {name: text for name, text in fields.items() if text.isascii() and text}
            fields["MESSAGE"] = line.message
            time_us = line.time_ns // 1000
            happening = parse_message(Entry(time_us, time_us, "", fields))
        told = self._loops.take([happening]) if happening is not None else []
        for each in told:
            details = {key: value for key, value in each.details.items() if value is not None}
            message = line.message if each.kind != "loop" else "it restarts over and over"
            events.append(
                Event(line.time_ns, f"unit_{each.kind}", each.unit, message, None, details)
            )
        if not told:
            events.append(line)
