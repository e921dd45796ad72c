"""Kernel logs as `dmesg` prints them, and as `/dev/kmsg` gives them.

    [  123.456789] message                         dmesg; seconds since boot
    <4>[  123.456789][   T17] message              dmesg -r, with CONFIG_PRINTK_CALLER
    kern  :warn  : [  123.456789] message          dmesg -x
    [Mon Nov 16 03:08:22 2026] message             dmesg -T; local time, no zone
    2026-11-16T03:08:22,123456+00:00 message       dmesg --time-format iso
    4,1234,123456789,-;message                     /dev/kmsg (Documentation/ABI/testing/dev-kmsg)

Seconds since boot are the kernel's own clock, which stops in suspend. A line
without a stamp goes on with the message before it; properties of a device, which
`/dev/kmsg` adds, are left out. What went wrong becomes an event of its own kind, as
the recorder would have made it; every other line is one of kind `kernel`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.clock import ClockPair
from nodescope.exchange.import_formats import ImportFormat, Peek, Progress
from nodescope.exchange.importer import (
    add_events,
    detects,
    import_wall_events,
    modified_ns,
    nothing_in,
    report_of,
    whole_blocks,
)
from nodescope.exchange.unpacked import read_head
from nodescope.ingest.clean_text import clean_text, split_lines
from nodescope.ingest.kernel_events import KernelEvents, KernelLine
from nodescope.ingest.parsed import Notes
from nodescope.ingest.sink import Capture, ImportReport, Sink
from nodescope.quantities import SECOND_NS
from nodescope.records.event import Event
from nodescope.wall_time import match_iso, parse_ctime

KERNEL = "kernel"  # a line that makes no event of another kind
BATCH = 4096
MAX_MORE_LINES = 256
BOOT, WALL = "boot", "wall"
NO_ZONE = "its times have no zone; they were taken as this machine's local time"

_FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron",
    "authpriv", "ftp", "res0", "res1", "res2", "res3",
    "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
)  # fmt: skip
_PRIORITY = re.compile(r"<(\d{1,4})>")
_DECORATION = re.compile(
    r"([a-z]+\d?) *:(?:emerg|alert|crit|err|warn|notice|info|debug) *: ", re.ASCII
)
_SINCE_BOOT = re.compile(r"\[ *(\d{1,10})\.(\d{1,9})\](?:\[ *[TC]\d{1,10}\])? ?", re.ASCII)
_BRACKETED = re.compile(r"\[([A-Z][a-z]{2} [A-Z][a-z]{2} [^\]]{1,20})\] ?")
_KMSG = re.compile(r"(\d{1,6}),(\d{1,18}),(\d{1,19}),[^;]{0,80};(.*)", re.DOTALL | re.ASCII)
_PROPERTY = re.compile(r" [A-Z_]{1,64}=")
_DRIVER = re.compile(
    r"([A-Za-z_][\w.+-]{0,31}(?:/[\w.]{1,31})?)(?:\[\d{1,10}\])?(?: \S{0,40}?[\d(]\S{0,40}){0,3}: ",
    re.ASCII,
)
_NO_DRIVER = {"BUG", "CPU", "Code", "ERROR", "INFO", "NOTICE", "RIP", "RSP", "WARNING"}


class LogLine(NamedTuple):
    """A stamped line: its clock is `BOOT` or `WALL`."""

    clock: str
    time_ns: int
    zoned: bool
    facility: str
    message: str
    sequence: int | None = None


def parse_line(text: str) -> LogLine | None:
    """One line in any of the forms; None if it has no stamp."""
    if match := _KMSG.match(text):
        facility = _facility(int(match[1]) >> 3)
        return LogLine(BOOT, int(match[3]) * 1000, True, facility, match[4], int(match[2]))
    facility = "kern"
    if match := _PRIORITY.match(text):
        facility, text = _facility(int(match[1]) >> 3), text[match.end() :]
    elif (match := _DECORATION.match(text)) and match[1] in _FACILITIES:
        facility, text = match[1], text[match.end() :]
    if match := _SINCE_BOOT.match(text):
        time_ns = int(match[1]) * SECOND_NS + int(match[2].ljust(9, "0"))
        return LogLine(BOOT, time_ns, True, facility, text[match.end() :])
    if match := _BRACKETED.match(text):
        moment = parse_ctime(match[1])
        if moment is not None:
            return LogLine(WALL, moment, False, facility, text[match.end() :])
        return None
    stamp = match_iso(text[:40])
    # A comma sets dmesg's times apart from those of journals and syslog.
    if stamp is not None and text[19:20] == "," and text[stamp[2] : stamp[2] + 1] in (" ", ""):
        return LogLine(WALL, stamp[0], stamp[1], facility, text[stamp[2] + 1 :])
    return None


def _facility(number: int) -> str:
    return _FACILITIES[number] if number < len(_FACILITIES) else "kern"


def subject_of(message: str, facility: str) -> str:
    """The driver or program that speaks, by the prefix of what it says; else the facility."""
    match = _DRIVER.match(message, 0, 160)
    return match[1] if match and match[1] not in _NO_DRIVER else facility


def looks_like_kernel_log(head: bytes) -> bool:
    """Whether a file's first bytes are such a log."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines()[:-1] if line.strip()]
    if not lines and head:
        lines = [head.decode("utf-8", "replace")]
    stamped = sum(parse_line(line[:1024]) is not None for line in lines[:200])
    return stamped > 0 and stamped * 2 >= len(lines[:200])


def parse_kernel_log(blocks: Iterable[bytes], notes: Notes) -> Iterator[list[Event]]:
    """Events in batches; `notes.facts["clock"]` tells which clock their times are on."""
    events: list[Event] = []
    told = KernelEvents()
    for line, more in _read_lines(blocks, notes):
        _tell(told, events, line, more)
        if len(events) >= BATCH:
            yield events
            events = []
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
        line = parse_line(text)
        if line is None:
            if held is not None and _PROPERTY.match(text):
                continue  # what /dev/kmsg tells of the device: SUBSYSTEM=, DEVICE=
            if held is not None and text.strip():
                if len(more) < MAX_MORE_LINES:
                    more.append(text.strip())
            elif text.strip():
                notes.skipped["lines before the first with a time"] += 1
            continue
        if line.clock != notes.facts.setdefault("clock", line.clock) or line.time_ns > MAX_TIME_NS:
            notes.skipped["lines with times of another clock"] += 1
            continue
        if not line.zoned:
            notes.remark(NO_ZONE)
        if held is not None:
            yield held, more
        held, more = line, []
    if held is not None:
        yield held, more


def _tell(told: KernelEvents, events: list[Event], line: LogLine, more: list[str]) -> None:
    by_user = line.facility != "kern"
    event = plain_event(line.time_ns, "\n".join([line.message, *more]), line.facility)
    add_kernel_line(told, events, event, sequence=line.sequence, by_user=by_user)


def add_kernel_line(
    kernel: KernelEvents,
    events: list[Event],
    line: Event,
    *,
    sequence: int | None = None,
    by_user: bool = False,
) -> None:
    """Add a line as the event it makes; as a plain one, of kind `kernel`, if it makes none."""
    told = KernelLine(line.time_ns, line.message, sequence, by_user)
    if kernel.add(events, told) is None:
        events.append(line)


def plain_event(time_ns: int, text: str, facility: str = "kern") -> Event:
    """A line as an event, whatever it says."""
    message = clean_text(text)
    return Event(time_ns, KERNEL, clean_text(subject_of(message, facility), 64), message)


def _peek(path: Path) -> Peek:
    notes = Notes()
    first = next((batch for batch in parse_kernel_log([read_head(path)], notes) if batch), None)
    on_wall = first is not None and notes.facts.get("clock") == WALL
    return Peek(None, first[0].time_ns if first is not None and on_wall else modified_ns(path))


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    notes = Notes()
    # Seconds since boot are placed by the last line, so that one must be known first.
    lines = _read_lines(whole_blocks(path, Notes()), notes)
    last_ns = max((line.time_ns for line, _ in lines), default=-1)
    if last_ns < 0:
        raise nothing_in(path, "kernel log line with a time", notes)
    if notes.facts["clock"] == WALL:
        return import_wall_events(path, sink, progress, FORMAT.name, parse_kernel_log)
    written_ns = modified_ns(path)
    said = "seconds since boot; the last line was taken to be as old as the file's last change"
    notes = Notes()
    sink.begin(Capture(ClockPair(last_ns, written_ns), said))
    for events in parse_kernel_log(whole_blocks(path, notes, progress), notes):
        add_events(sink, events)
    return report_of(path, FORMAT.name, notes)


FORMAT = ImportFormat("kernel log", detects(looks_like_kernel_log), _peek, _import)
