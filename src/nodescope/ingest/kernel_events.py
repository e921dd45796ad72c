"""Lines of a kernel's log as events, for a recorder that reads them and for imported logs.

A line that reports what went wrong gets its kind, core and details by the rules of
`sources.kernel_log.messages`. Two lines that the kernel writes about one thing are one event.
The lines of a call trace make a row of `call_traces`, beside the event that they belong to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nodescope.ingest.clean_text import clean_text
from nodescope.quantities import SECOND_NS
from nodescope.records.details import read_details
from nodescope.records.event import Event, details_of_kind
from nodescope.records.node_tables import KernelLogRow
from nodescope.records.witness_tables import CallTraceRow
from nodescope.sources.kernel_log.call_traces import CallTrace, CallTraces
from nodescope.sources.kernel_log.kmsg import Record
from nodescope.sources.kernel_log.messages import KernelMessage, classify, complete, join

_JOIN_NS = 2 * SECOND_NS  # what belongs together is written within that
_ANNOUNCED_NS = 20 * SECOND_NS  # a slow console writes a long report between the two
_LONGEST_SUBJECT = 255


class KernelLine(NamedTuple):
    """One line of a kernel's log; its time is on the clock that its event is to have."""

    time_ns: int
    text: str
    sequence: int | None = None  # the kernel's own number, where it is known
    by_user: bool = False
    caller: str = ""  # who wrote it, where the kernel says so: lines of one dump have the same


def kernel_log_row(record: Record, time_ns: int) -> KernelLogRow:
    """Return a record as a row of `kernel_log`."""
    return KernelLogRow(
        time_ns=time_ns,
        sequence=record.sequence,
        level=record.level,
        facility=record.facility,
        user=record.by_user,
        text=record.text,
    )


def line_of(record: Record, time_ns: int) -> KernelLine:
    """Return the line of a record."""
    return KernelLine(time_ns, record.text, record.sequence, record.by_user, record.caller)


@dataclass(slots=True)
class _Last:
    """The last message, which the lines after it may complete."""

    message: KernelMessage
    line: KernelLine
    events: list[Event] | None  # the batch its event stands in; None if it has none
    at: int = 0


class _Announced(NamedTuple):
    """What lines say of an event that is to come, and when the last of them was written."""

    message: KernelMessage
    time_ns: int


class KernelEvents:
    """Makes events of the lines of one log, given in their order."""

    def __init__(self) -> None:
        self._last: _Last | None = None
        self._announced: _Announced | None = None
        self._call_traces = CallTraces()
        self._traces: list[CallTraceRow] = []
        self._lines = 0

    def add(
        self, events: list[Event], line: KernelLine, *, recorded: bool = False
    ) -> KernelMessage | None:
        """Add the event that a line makes, and return what it reports.

        A line that goes on with an earlier one completes the event of that, if it stands in
        the same list, and makes none itself. `recorded`: the archive has its event already.
        """
        self._lines += 1
        message = self._read(events, line)
        self._trace(line)
        if message is None:
            return None
        self._last = _Last(message, line, None if recorded else events, len(events))
        if not recorded:
            events.append(kernel_event(line, message))
        return message

    def take_traces(self, now_ns: int | None = None) -> list[CallTraceRow]:
        """Return the call traces that are whole by now; all if no time is given."""
        ended = self._call_traces.flush(now_ns)
        traces, self._traces = [*self._traces, *map(_trace_row, ended)], []
        return traces

    def _read(self, events: list[Event], line: KernelLine) -> KernelMessage | None:
        """Return the message of which a line makes an event; None if it makes none."""
        if self._complete(events, line):
            return None
        message = classify(line.text)
        if message is None:
            return None
        if message.announces:
            self._announce(line, message)
            return None
        return self._take_announced(line, message)

    def _trace(self, line: KernelLine) -> None:
        """Read a line as one of a call trace, which belongs to the event just before it."""
        if not self._call_traces.concerns(line.text):
            return
        last, announced, kind = self._last, self._announced, None
        if announced is not None and line.time_ns - announced.time_ns <= _JOIN_NS:
            kind = announced.message.kind
        elif last is not None and line.time_ns - last.line.time_ns <= _JOIN_NS:
            kind = last.message.kind
        sequence = self._lines if line.sequence is None else line.sequence
        ended = self._call_traces.take(line.time_ns, line.text, sequence, kind, line.caller)
        self._traces += map(_trace_row, ended)

    def _announce(self, line: KernelLine, message: KernelMessage) -> None:
        """Keep what a line says of an event that a later line makes."""
        before = self._announced
        if before is not None and before.message.kind == message.kind:
            asks_anew = before.message.details.keys() & message.details.keys()
            if not asks_anew:
                message = complete(before.message, message)
        self._announced = _Announced(message, line.time_ns)

    def _take_announced(self, line: KernelLine, message: KernelMessage) -> KernelMessage:
        """Return a message with what the lines before it announced."""
        announced = self._announced
        if announced is None or announced.message.kind != message.kind:
            return message
        self._announced = None
        if line.time_ns - announced.time_ns > _ANNOUNCED_NS:
            return message
        return complete(announced.message, message)

    def _complete(self, events: list[Event], line: KernelLine) -> bool:
        """Return whether a line goes on with the last message, and complete that by it."""
        last = self._last
        if last is None or line.time_ns - last.line.time_ns > _JOIN_NS:
            return False
        joined = join(last.message, line.text)
        if joined is None:
            return False
        last.message = joined
        if last.events is events:
            events[last.at] = kernel_event(last.line, joined)
        return True


def kernel_event(line: KernelLine, message: KernelMessage) -> Event:
    """Return the event of a line by what it reports; its message is the first line of it."""
    found = {
        **message.details,
        "driver": message.driver,
        "device": message.device,
        "interface": message.interface,
        "queue": message.queue,
        "sequence": line.sequence,
        "user": line.by_user or None,
    }
    return Event(
        line.time_ns,
        message.kind,
        message.subject[:_LONGEST_SUBJECT] or "kernel",
        _first_line(line.text),
        cpu=message.cpu,
        details=read_details(details_of_kind(message.kind), found),
    )


def _trace_row(trace: CallTrace) -> CallTraceRow:
    return CallTraceRow(
        time_ns=trace.time_ns,
        sequence=trace.sequence,
        cpu=trace.cpu,
        pid=trace.pid,
        comm=None if trace.comm is None else clean_text(trace.comm, 64),
        event_kind=trace.kind,
        work=trace.work,
        interrupted=trace.interrupted,
        stack=";".join(trace.frames),
    )


def _first_line(text: str) -> str:
    """Return what stands before a line break, be it escaped (`clean_text`) or not."""
    return text.partition("\n")[0].partition("\\n")[0]
