"""Journals as `journalctl` writes them, and system logs as syslog does.

Text is read in every form whose times `wall_stamps` knows: `-o short`, `short-precise`,
`short-iso`, `short-full`, `with-unit`, and `/var/log/messages` in RFC 3164 or 5424.

JSON is one object a line; a field that is not text comes as an array of bytes,
one that occurs several times as an array, one that is too large as null. What
the kernel said keeps the time the kernel gave it, not that of its arrival, and
becomes an event like a line of a kernel's own log; what systemd says of its units
becomes `unit_exit`, `unit_restart` and the like. All else is of kind `journal`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.exchange.import_formats import ImportFormat, Progress
from nodescope.exchange.importer import detects, import_wall_events, peek_events
from nodescope.exchange.logs import kernel_log
from nodescope.exchange.logs.kernel_lines import parse_line
from nodescope.exchange.logs.kernel_log import KERNEL, add_kernel_line
from nodescope.exchange.logs.wall_stamps import WallStamp, match_stamp, note_lacks
from nodescope.ingest.clean_text import MAX_LINE_BYTES, clean, clean_text, split_lines
from nodescope.ingest.kernel_events import KernelEvents
from nodescope.ingest.parsed import Notes
from nodescope.ingest.service_events import ServiceEvents
from nodescope.ingest.sink import ImportReport, Sink
from nodescope.ingest.unit_events import UNIT_FIELDS, UnitEvents
from nodescope.records.event import Event
from nodescope.records.json import JsonObject
from nodescope.sources.systemd.happenings import CHOSEN
from nodescope.sources.systemd.unit_texts import parse_unit_text

JOURNAL = "journal"
_MAX_FIELD = 255  # characters of a field that are read
MAX_OBJECT_BYTES = 1 << 20  # a coredump's entry carries its stack trace
_SHORT = re.compile(
    r" (?P<host>\S{1,255}) (?P<who>[^\s:\[]{1,128}(?: [^\s:\[]{1,64}){0,2})"
    r"(?:\[(?P<pid>\d{1,10})\])?: ?(?P<message>.*)",
    re.DOTALL,
)
_PRIORITY = re.compile(r"<\d{1,3}>(?:1 (?=\d{4}-))?")
_STRUCTURED = re.compile(  # RFC 5424: host, program, process id, message id, structured data
    r" (?P<host>\S{1,255}) (?P<who>[^\s:\[]{1,128}) (?:-|(?P<pid>\d{1,10})) \S{1,64} "
    r"(?:-|(?:\[(?:[^\]\\]|\\.){0,2048}\])+)(?: \ufeff?(?P<message>.*)|$)",
    re.DOTALL,
)
_BOOT_MARK = re.compile(r"-- .* --$|-- (?:Journal|Logs) begin")


class _TextLine(NamedTuple):
    """A line of a system log: its event, its time, its host, and who wrote it."""

    event: Event
    stamp: WallStamp
    host: str
    caller: str = ""
    by_manager: bool = False  # systemd itself, not that of a user


def looks_like_journal_json(head: bytes) -> bool:
    """Return whether a file's first line is a journal entry."""
    first = head.lstrip(b"\x1e \t\r\n").split(b"\n", 1)[0]
    return first.startswith(b"{") and b'"__REALTIME_TIMESTAMP"' in head


def looks_like_journal_text(head: bytes) -> bool:
    """Return whether most of a file's first lines are journal text."""
    found, lines = count_text_lines(head)
    return found > 0 and found * 2 >= lines


def count_text_lines(head: bytes) -> tuple[int, int]:
    """Return how many of a file's first lines have the form of a system log, and of how many."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines()[:200] if line.strip()]
    lines = [line for line in lines if not _BOOT_MARK.match(line) and not line.startswith(" ")]
    return sum(_parse_text(line[:4096], None) is not None for line in lines), len(lines)


def parse_journal_json(blocks: Iterable[bytes], notes: Notes) -> Iterator[list[Event]]:
    """Yield events in batches, on the wall clock."""
    return events_of(_read_json(blocks, notes), notes)


def _read_json(blocks: Iterable[bytes], notes: Notes) -> Iterator[Any]:
    for offset, raw, whole in split_lines(blocks, MAX_OBJECT_BYTES):
        line = raw.strip(b"\x1e \t\r\0")
        notes.offset = offset + len(raw)
        if not line:
            continue
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):  # a UnicodeDecodeError is one, too
            if not whole:
                notes.stop(offset, "it ends in the middle of an entry")
                break
            notes.skipped["lines that are no journal entry"] += 1


def events_of(entries: Iterable[Any], notes: Notes) -> Iterator[list[Event]]:
    """Yield the events of journal entries in batches, whatever form they were read from."""
    events: list[Event] = []
    kernel, units, services = KernelEvents(), UnitEvents(), ServiceEvents()
    for entry in entries:
        event = parse_entry(entry)
        if event is None:
            notes.skipped["entries without a time"] += 1
            continue
        if isinstance(entry.get("_HOSTNAME"), str):
            notes.facts.setdefault("nodename", clean_text(entry["_HOSTNAME"], 255))
        if event.kind == KERNEL:
            notes.observers.add(kernel_log.OBSERVER)
            by_user = field_text(entry.get("SYSLOG_FACILITY")) not in ("", "0")
            add_kernel_line(kernel, events, event, by_user=by_user)
            notes.rows += kernel.take_traces(event.time_ns)
        else:
            fields = _unit_fields(entry, event.message)
            told = units.take(event.time_ns, fields) if fields else []
            events += told or _of_service(services, event)
        if len(events) >= kernel_log.BATCH:
            yield events
            events = []
    events += services.flush()
    notes.rows += kernel.take_traces()
    yield events


def _of_service(services: ServiceEvents, line: Event) -> list[Event]:
    """Return the events of a line that a service wrote; the line itself if it makes none."""
    return services.take(line.time_ns, line.subject, line.message) or [line]


def _unit_fields(entry: JsonObject, message: str) -> dict[str, str]:
    """Return the fields by which systemd reports what happened to a unit; none if it does not."""
    chosen = (name for name in CHOSEN if name in entry)
    if not any(field_text(entry[name]) in CHOSEN[name] for name in chosen):
        return {}
    given = (name for name in UNIT_FIELDS if name in entry)
    found = {name: field_text(entry[name])[:_MAX_FIELD] for name in given}
    fields = {name: text for name, text in found.items() if text and text.isascii()}
    return {**fields, "MESSAGE": message}


def parse_entry(entry: Any) -> Event | None:
    """One journal entry; None without a usable time."""
    if not isinstance(entry, dict):
        return None
    time_ns = _microseconds(entry.get("__REALTIME_TIMESTAMP"))
    if time_ns is None:
        return None
    message = field_text(entry.get("MESSAGE"))
    if field_text(entry.get("_TRANSPORT")) == "kernel":
        arrived = _microseconds(entry.get("__MONOTONIC_TIMESTAMP"))
        said = _microseconds(entry.get("_SOURCE_MONOTONIC_TIMESTAMP"))
        if arrived is not None and said is not None and 0 <= arrived - said <= time_ns:
            time_ns -= arrived - said
        return kernel_log.plain_event(time_ns, message)
    return Event(time_ns, JOURNAL, _subject(entry), message)


def _subject(entry: JsonObject) -> str:
    # What the service manager says about a unit is about that unit.
    names = ["_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_COMM", "_TRANSPORT"]
    if entry.get("_PID") == "1" or entry.get("_SYSTEMD_UNIT") == "init.scope":
        names.insert(0, "UNIT")
    for name in names:
        if text := field_text(entry.get(name)):
            return text[:255]
    return JOURNAL


def field_text(value: Any) -> str:
    """A field as text, whatever shape it comes in."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list) and value:
        if all(type(one) is int and 0 <= one < 256 for one in value[:MAX_LINE_BYTES]):
            return clean(bytes(value[:MAX_LINE_BYTES]))
        return field_text(value[0]) if not isinstance(value[0], dict | list) else _first(value[0])
    return ""


def _first(value: Any) -> str:
    """The first of several values of a field, itself maybe an array of bytes."""
    if isinstance(value, list) and all(type(one) is int and 0 <= one < 256 for one in value):
        return clean(bytes(value[:MAX_LINE_BYTES]))
    return ""


def _microseconds(value: Any) -> int | None:
    if not isinstance(value, str) or not (value.isascii() and value.isdigit()) or len(value) > 16:
        return None
    time_ns = int(value) * 1000
    return time_ns if time_ns <= MAX_TIME_NS else None


def parse_journal_text(blocks: Iterable[bytes], notes: Notes) -> Iterator[list[Event]]:
    """Events in batches, on the wall clock; an indented line goes on with the one before."""
    events: list[Event] = []
    kernel, units, services = KernelEvents(), UnitEvents(), ServiceEvents()
    more: list[str] = []  # lines that go on with the last event
    for offset, raw, _ in split_lines(blocks):
        text = raw.decode("utf-8", "replace")
        notes.offset = offset + len(raw)
        if not text.strip() or _BOOT_MARK.match(text):
            continue
        parsed = _parse_text(text, notes.written_ns)
        if parsed is None:
            if events and text.startswith((" ", "\t")):
                if len(more) < kernel_log.MAX_MORE_LINES:
                    more.append(text.strip())
            else:
                notes.skipped["lines that are no journal entry"] += 1
            continue
        event, stamp, host, caller, by_manager = parsed
        note_lacks(stamp, notes)
        notes.facts.setdefault("nodename", host)
        _go_on(events, more)
        more = []
        if len(events) >= kernel_log.BATCH:
            yield events
            events = []
        if event.kind == KERNEL:
            notes.observers.add(kernel_log.OBSERVER)
            add_kernel_line(kernel, events, event, caller=caller)
            notes.rows += kernel.take_traces(event.time_ns)
        else:
            fields = parse_unit_text(event.message) if by_manager else {}
            told = units.take(event.time_ns, fields) if fields else []
            events += told or _of_service(services, event)
    _go_on(events, more)
    events += services.flush()
    notes.rows += kernel.take_traces()
    yield events


def _go_on(events: list[Event], more: list[str]) -> None:
    """Add lines to the last event's message."""
    if more:
        message = clean_text("\n".join([events[-1].message, *more]))
        events[-1] = replace(events[-1], message=message)


def _parse_text(text: str, written_ns: int | None) -> _TextLine | None:
    """Return a line as an event; None if it is no line of a log."""
    start = priority.end() if (priority := _PRIORITY.match(text)) else 0
    stamp = match_stamp(text[start:], written_ns)
    if stamp is None or text[start + 19 : start + 20] == ",":  # a comma: dmesg's ISO times
        return None
    match = _STRUCTURED.match(text, start + stamp.end) or _SHORT.match(text, start + stamp.end)
    if match is None:
        return None
    message, who = clean_text(match["message"]), clean_text(match["who"], 128)
    host = clean_text(match["host"], 255)
    if who == "kernel":
        line = parse_line(message)  # rsyslog keeps the kernel's stamp in front
        caller = ""
        if line is not None and line.clock == "boot":
            message, caller = line.message, line.caller
        event = kernel_log.plain_event(stamp.time_ns, message)
        return _TextLine(event, stamp, host, caller)
    by_manager = who == "systemd" and match["pid"] in (None, "1")
    event = Event(stamp.time_ns, JOURNAL, who, message)
    return _TextLine(event, stamp, host, by_manager=by_manager)


def _import_json(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    return import_wall_events(path, sink, progress, JSON_FORMAT.name, parse_journal_json)


def _import_text(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    return import_wall_events(path, sink, progress, TEXT_FORMAT.name, parse_journal_text)


JSON_FORMAT = ImportFormat(
    "journal JSON",
    detects(looks_like_journal_json),
    peek_events(parse_journal_json),
    _import_json,
)
TEXT_FORMAT = ImportFormat(
    "journal text",
    detects(looks_like_journal_text),
    peek_events(parse_journal_text),
    _import_text,
    count_text_lines,
)
