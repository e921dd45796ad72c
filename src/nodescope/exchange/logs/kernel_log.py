"""Kernel logs as `dmesg` prints them, `/dev/kmsg` gives them and consoles show them.

`kernel_lines` has the forms of a line. Seconds since boot are the kernel's own clock, which
stops in suspend; differences are added up from the last time that was told. A line
without a stamp goes on with the message before it; properties of a device, which
`/dev/kmsg` adds, are left out. What went wrong becomes an event of its own kind, as
the recorder would have made it; every other line is one of kind `kernel`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.clock import ClockPair
from nodescope.exchange.import_formats import ImportFormat, Peek, Progress
from nodescope.exchange.importer import (
    add_estimate,
    add_events,
    add_rows,
    detects,
    import_wall_events,
    modified_ns,
    nothing_in,
    report_of,
    whole_blocks,
)
from nodescope.exchange.logs.kernel_lines import LogLine, find_line_inside, parse_line
from nodescope.exchange.logs.wall_stamps import NO_YEAR, NO_ZONE
from nodescope.exchange.unpacked import read_head
from nodescope.ingest.clean_text import clean_text, split_lines
from nodescope.ingest.kernel_events import KernelEvents, KernelLine
from nodescope.ingest.parsed import Notes
from nodescope.ingest.sink import Capture, ImportReport, Sink
from nodescope.records.event import Event

KERNEL = "kernel"  # a line that makes no event of another kind
OBSERVER = "kernel_log"  # of the recorder, which reads the same lines
BATCH = 4096
MAX_MORE_LINES = 256
FROM_ZERO = "its times are differences; the first line was taken as the start"
FEW = 20  # stamped lines among many of a console are enough, if they are a tenth

LinesOf = Callable[[Iterable[bytes]], Iterator[bytes]]

_PROPERTY = re.compile(r" [A-Z_]{1,64}=")
_DRIVER = re.compile(
    r"([A-Za-z_][\w.+-]{0,31}(?:/[\w.]{1,31})?)(?:\[\d{1,10}\])?(?: \S{0,40}?[\d(]\S{0,40}){0,3}: ",
    re.ASCII,
)
_NO_DRIVER = {"BUG", "CPU", "Code", "ERROR", "INFO", "NOTICE", "RIP", "RSP", "WARNING"}


def subject_of(message: str, facility: str) -> str:
    """The driver or program that speaks, by the prefix of what it says; else the facility."""
    match = _DRIVER.match(message, 0, 160)
    return match[1] if match and match[1] not in _NO_DRIVER else facility


def looks_like_kernel_log(head: bytes) -> bool:
    """Return whether a file begins like a kernel log."""
    stamped, lines = count_stamped(head)
    return stamped > 0 and (stamped * 2 >= lines or (stamped >= FEW and stamped * 10 >= lines))


def count_stamped(head: bytes) -> tuple[int, int]:
    """Return how many of a file's first lines have the form of a kernel log, and of how many."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines()[:-1] if line.strip()]
    if not lines and head:
        lines = [head.decode("utf-8", "replace")]
    return sum(parse_line(line[:1024]) is not None for line in lines[:400]), len(lines[:400])


def parse_kernel_log(blocks: Iterable[bytes], notes: Notes) -> Iterator[list[Event]]:
    """Yield events in batches; `notes.facts["clock"]` names the clock of their times."""
    events: list[Event] = []
    told = KernelEvents()
    notes.observers.add(OBSERVER)
    for line, more in _read_lines(blocks, notes):
        _tell(told, events, line, more)
        notes.rows += told.take_traces(line.time_ns)
        if len(events) >= BATCH:
            yield events
            events = []
    notes.rows += told.take_traces()
    yield events


def _read_lines(blocks: Iterable[bytes], notes: Notes) -> Iterator[tuple[LogLine, list[str]]]:
    """Yield the lines that have a time, each with those that go on with it."""
    held: LogLine | None = None
    more: list[str] = []
    for offset, raw, whole in split_lines(blocks):
        if not whole and notes.stopped is None:
            notes.remark("the last line has no end; it was taken as whole")
        notes.offset = offset + len(raw)
        text = raw.decode("utf-8", "replace")
        line = parse_line(text, notes.written_ns)
        if line is None and notes.facts.get("clock") == "boot":
            line = find_line_inside(text)
        if line is None:
            _go_on(held, more, text, notes)
            continue
        line = _place(line, held, notes)
        if line.clock != notes.facts.setdefault("clock", line.clock) or line.time_ns > MAX_TIME_NS:
            notes.skipped["lines with times of another clock"] += 1
            continue
        if held is not None:
            yield held, more
        held, more = line, []
    if held is not None:
        yield held, more


def _place(line: LogLine, before: LogLine | None, notes: Notes) -> LogLine:
    """Return the line with a time of its own; remark what had to be assumed of it."""
    if line.clock == "since last":
        if before is None:
            notes.remark(FROM_ZERO)
            return line._replace(clock="boot")
        return line._replace(
            clock=before.clock, time_ns=before.time_ns + line.time_ns, zoned=before.zoned
        )
    if not line.zoned:
        notes.remark(NO_ZONE)
    if not line.dated:
        notes.remark(NO_YEAR)
    return line


def _go_on(held: LogLine | None, more: list[str], text: str, notes: Notes) -> None:
    """Add a line without a stamp to the message before it."""
    if not text.strip():
        return
    if held is None:
        notes.skipped["lines before the first with a time"] += 1
    # What /dev/kmsg tells of the device is left out: SUBSYSTEM=, DEVICE=.
    elif not _PROPERTY.match(text) and len(more) < MAX_MORE_LINES:
        more.append(text.strip())


def _tell(told: KernelEvents, events: list[Event], line: LogLine, more: list[str]) -> None:
    by_user = line.facility != "kern"
    event = plain_event(line.time_ns, "\n".join([line.message, *more]), line.facility)
    add_kernel_line(
        told, events, event, sequence=line.sequence, by_user=by_user, caller=line.caller
    )


def add_kernel_line(
    kernel: KernelEvents,
    events: list[Event],
    line: Event,
    *,
    sequence: int | None = None,
    by_user: bool = False,
    caller: str = "",
) -> None:
    """Add a line as the event it makes; as a plain one, of kind `kernel`, if it makes none."""
    told = KernelLine(line.time_ns, line.message, sequence, by_user, caller)
    if kernel.add(events, told) is None:
        events.append(line)


def plain_event(time_ns: int, text: str, facility: str = "kern") -> Event:
    """A line as an event, whatever it says."""
    message = clean_text(text)
    return Event(time_ns, KERNEL, clean_text(subject_of(message, facility), 64), message)


def peek(path: Path, lines_of: LinesOf = iter) -> Peek:
    """Return when a log begins; `lines_of` makes plain lines of its blocks."""
    notes = Notes(written_ns=modified_ns(path))
    blocks = lines_of([read_head(path)])
    first = next((batch for batch in parse_kernel_log(blocks, notes) if batch), None)
    on_wall = first is not None and notes.facts.get("clock") == "wall"
    return Peek(None, first[0].time_ns if first is not None and on_wall else modified_ns(path))


def import_lines(
    path: Path, sink: Sink, progress: Progress, name: str, lines_of: LinesOf = iter
) -> ImportReport:
    """Import a log; `lines_of` makes plain lines of its blocks."""
    written_ns = modified_ns(path)
    notes = Notes(written_ns=written_ns)
    # Seconds since boot are placed by the last line, so that one must be known first.
    lines = _read_lines(lines_of(whole_blocks(path, Notes())), notes)
    last_ns = max((line.time_ns for line, _ in lines), default=-1)
    if last_ns < 0:
        raise nothing_in(path, "kernel log line with a time", notes)
    if notes.facts["clock"] == "wall":
        return import_wall_events(path, sink, progress, name, parse_kernel_log)
    said = "seconds since boot; the last line was taken to be as old as the file's last change"
    notes = Notes()
    sink.begin(Capture(ClockPair(last_ns, written_ns), said))
    for events in parse_kernel_log(lines_of(whole_blocks(path, notes, progress)), notes):
        add_events(sink, events)
        add_rows(sink, notes)
    add_estimate(sink, path, last_ns)
    return report_of(path, name, notes)


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    return import_lines(path, sink, progress, FORMAT.name)


FORMAT = ImportFormat("kernel log", detects(looks_like_kernel_log), peek, _import, count_stamped)
