"""Parts that importers of text share: unpacking, reports, rows for the sink."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.clock import ClockPair
from nodescope.errors import MalformedSource, source_error
from nodescope.exchange.import_formats import Peek, Progress
from nodescope.exchange.unpacked import Torn, compression_of, read_blocks, read_head
from nodescope.ingest.clean_text import clean_text
from nodescope.ingest.event_rows import event_rows
from nodescope.ingest.parsed import Notes, ParsedSamples, Reading
from nodescope.ingest.samples import SampleRows
from nodescope.ingest.sink import Capture, ImportNames, ImportReport, Sink
from nodescope.records.columns import columns_of
from nodescope.records.event import Event
from nodescope.records.event_details import ImportDetails
from nodescope.records.recorder_tables import CoreRow

IMPORT_EVENT = "import"
ESTIMATED = (
    "times are estimated from the file's age: its last record is taken to be as old as its last "
    "change, and may be older"
)
ParsesEvents = Callable[[Iterable[bytes], Notes], Iterator[list[Event]]]
ParsesReadings = Callable[[Iterable[bytes], Notes], Iterator[list[Reading]]]


def detects(looks: Callable[[bytes], bool]) -> Callable[[bytes, Path], bool]:
    """`Format.detect` from what recognises unpacked first bytes."""

    def detect(head: bytes, path: Path) -> bool:
        return looks(read_head(path) if compression_of(head) else head)

    return detect


def whole_blocks(
    path: Path, notes: Notes, progress: Progress = lambda done: None
) -> Iterator[bytes]:
    """A file's blocks; one that cannot be unpacked to its end stops there, and it is noted."""
    try:
        yield from read_blocks(path, progress=progress)
    except Torn as error:
        notes.stop(error.offset, error.reason)


def modified_ns(path: Path) -> int:
    """When a file was last written."""
    try:
        return min(max(path.stat().st_mtime_ns, 0), MAX_TIME_NS)
    except OSError as error:
        raise source_error(path, error) from error


def report_of(path: Path, format_name: str, notes: Notes) -> ImportReport:
    """Return a parser's notes as a report."""
    report = ImportReport(str(path), format_name)
    report.malformed = notes.skipped.total()
    report.lost = notes.lost
    report.out_of_order = notes.out_of_order
    report.truncated_stacks = notes.truncated
    report.notes = [*notes.remarks]
    report.notes += [f"left out: {count} {what}" for what, count in notes.skipped.most_common(10)]
    if notes.stopped is not None:
        report.stopped_at, report.stopped_why = notes.offset, notes.stopped
    return report


def nothing_in(path: Path, what: str, notes: Notes) -> MalformedSource:
    """The error for a file that holds nothing to import."""
    why = notes.stopped or ", ".join(notes.skipped) or "it is empty"
    return MalformedSource(path, f"no {what} in it: {why}")


def node_of(notes: Notes) -> dict[str, object]:
    """Return a file's facts of its node, in the archive's words."""
    names = {"hostname": "name", "nodename": "name", "os release": "kernel", "release": "kernel"}
    return {names[key]: value for key, value in notes.facts.items() if key in names and value}


# -- rows ----------------------------------------------------------------------


def add_samples(sink: Sink, samples: ParsedSamples) -> None:
    """Hand samples on; their stacks are not parted into user and kernel."""
    if not len(samples):
        return
    names = ImportNames(samples.names.frames, samples.names.paths, samples.names.comms)
    rows = SampleRows(
        samples.time_ns,
        samples.cpu,
        samples.pid,
        samples.tid,
        samples.comm,
        samples.kernel_mode,
        samples.path,
        np.zeros(len(samples), np.int64),
    )
    sink.samples(rows, names)


def add_events(sink: Sink, events: Sequence[Event]) -> None:
    """Hand events on."""
    if events:
        sink.append("events", columns_of(event_rows(events)))


def add_rows(sink: Sink, notes: Notes) -> None:
    """Hand on the rows that a parser set aside, and whose work the file stands for."""
    for observer in notes.observers:
        sink.observed(observer)
    rows, notes.rows = notes.rows, []
    tables = dict.fromkeys(row.table().name for row in rows)
    for name in tables:
        sink.append(name, columns_of([row for row in rows if row.table().name == name]))


def add_readings(sink: Sink, readings: Sequence[Reading]) -> None:
    """Hand readings of cores on."""
    if not readings:
        return
    ticks = np.array([reading.ticks for reading in readings], np.int64)
    cpu = np.array([reading.cpu for reading in readings], np.int64)
    time_ns = np.array([reading.time_ns for reading in readings], np.int64)
    sink.append("cores", dict(zip(CoreRow.names(), (cpu, time_ns, *ticks.T), strict=True)))


def import_event(time_ns: int, path: Path, message: str) -> Event:
    """An event that says what kind of truth the rows beside it are."""
    return Event(time_ns, IMPORT_EVENT, clean_text(path.name, 255), message)


def add_estimate(sink: Sink, path: Path, last_ns: int) -> None:
    """Note in the recording that the file's last record is placed by when it was last changed."""
    event = import_event(last_ns, path, ESTIMATED)
    add_events(sink, [replace(event, details=ImportDetails(estimated=True))])


# -- whole imports of files on the wall clock ------------------------------------


def peek_events(parse: ParsesEvents) -> Callable[[Path], Peek]:
    """`Format.peek` of a log on the wall clock."""

    def peek(path: Path) -> Peek:
        notes = Notes(written_ns=modified_ns(path))
        first = next((batch for batch in parse([read_head(path)], notes) if batch), None)
        return Peek(notes.facts.get("nodename"), first[0].time_ns if first else None)

    return peek


def import_wall_events(
    path: Path,
    sink: Sink,
    progress: Progress,
    format_name: str,
    parse: ParsesEvents,
) -> ImportReport:
    """Import a log whose times are wall times."""
    notes = Notes(written_ns=modified_ns(path))
    begun = False
    for events in parse(whole_blocks(path, notes, progress), notes):
        if events and not begun:
            sink.begin(wall_capture(events[0].time_ns, "wall times in the log", notes))
            begun = True
        add_events(sink, events)
        if begun:
            add_rows(sink, notes)
    if not begun:
        raise nothing_in(path, "log line with a time", notes)
    return report_of(path, format_name, notes)


def peek_readings(parse: ParsesReadings) -> Callable[[Path], Peek]:
    """`Format.peek` of a table of cores."""

    def peek(path: Path) -> Peek:
        notes = Notes()
        first = next((batch for batch in parse([read_head(path)], notes) if batch), None)
        return Peek(notes.facts.get("nodename"), first[0].time_ns if first else None)

    return peek


def import_shares(
    path: Path, sink: Sink, progress: Progress, format_name: str, parse: ParsesReadings
) -> ImportReport:
    """Import per-core percentages, as counters."""
    notes = Notes()
    notes.remark("its times have no zone; they were taken as this machine's local time")
    begun = False
    for readings in parse(whole_blocks(path, notes, progress), notes):
        if readings and not begun:
            time_ns = readings[0].time_ns
            sink.begin(wall_capture(time_ns, f"date and times in the {format_name} output", notes))
            said = f"core counters were made from the percentages of {format_name}, by interval"
            add_events(sink, [import_event(time_ns, path, said)])
            begun = True
        add_readings(sink, readings)
    if not begun:
        raise nothing_in(path, "interval with cores", notes)
    return report_of(path, format_name, notes)


def wall_capture(time_ns: int, source: str, notes: Notes) -> Capture:
    """A capture whose own clock is the wall clock."""
    return Capture(ClockPair(time_ns, time_ns), source, node_of(notes))
