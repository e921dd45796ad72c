"""The kernel's log, observed for real: lines written here, read back with their time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernel_log import ring_bytes, write_line
from tests.sources.kernel_log.messages.formats import FORMATS
from tests.waiting import wait_for

from nodescope.archive.reader import Archive
from nodescope.archive.retention import read_frozen
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.errors import ArchiveError
from nodescope.ingest.event_rows import event_rows
from nodescope.ingest.kernel_events import KernelEvents, KernelLine
from nodescope.ingest.observation import Observation
from nodescope.quantities import MILLISECOND_NS
from nodescope.recorder.already_recorded import read_told
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import kernel_log
from nodescope.recorder.observers.kernel_log import MOST_LINES, KernelLogObserver
from nodescope.records.columns import columns_by_table
from nodescope.records.event import Event
from nodescope.records.event_details import KernelLineDetails
from nodescope.records.node_tables import KernelLogRow
from nodescope.records.recorder_tables import HeartbeatRow
from nodescope.sources.node.identity import read_node
from nodescope.sources.places import Places

RECORD = """
import sys
from pathlib import Path
from nodescope.recorder.observers.catalogue import NAMES
from nodescope.recorder.options import RecorderOptions
from nodescope.recorder.session import record
without = tuple(name for name in NAMES if name != "kernel_log")
record(RecorderOptions(Path(sys.argv[1]), frequency_hz=1, flush_ns=200_000_000, without=without))
"""


class Collected:
    """All that an observer said so far."""

    def __init__(self, observer: KernelLogObserver) -> None:
        self.observer = observer
        self.rows: list[KernelLogRow] = []
        self.events: list[Event] = []
        self.lost = 0
        self.largest = 0

    def ask(self) -> Observation:
        said = self.observer.observe(0)
        rows = said.rows_of(KernelLogRow)
        self.largest = max(self.largest, len(rows))
        self.rows += rows
        self.events += said.events
        self.lost += sum(gap.lost or 0 for gap in said.gaps)
        return said

    def has(self, text: str) -> bool:
        self.ask()
        return any(row.text == text for row in self.rows)


@pytest.fixture
def collected(tmp_path: Path) -> Iterator[Collected]:
    observer = kernel_log.make(Setting(Places(), tmp_path / "none"))
    yield Collected(observer)
    observer.close()


@pytest.mark.live
@pytest.mark.root
def test_every_format_comes_back_as_its_event_at_its_time(collected: Collected) -> None:
    """As in an import of the same lines: some of them, one after the other, are one event."""
    tag = f"nodescope-formats-{os.getpid()}-{time.monotonic_ns()}"
    first = write_line(f"{tag} begins")
    written = [write_line(known.text) for known in FORMATS]
    last = write_line(f"{tag} ends")
    wait_for(lambda: collected.has(last.text), last.text)
    events = [
        event
        for event in collected.events
        if first.before_ns <= event.time_ns <= last.after_ns and event.get(KernelLineDetails).user
    ]
    expected: list[Event] = []
    reader = KernelEvents()
    for line in written:
        reader.add(expected, KernelLine(line.before_ns, line.text, None, by_user=True))
    assert len(events) > len(FORMATS) * 0.9
    assert [_facts(event) for event in events] == [_facts(event) for event in expected]
    for event, line in zip(events, expected, strict=True):
        assert abs(event.time_ns - line.time_ns) < 100 * MILLISECOND_NS


def _facts(event: Event) -> tuple[object, ...]:
    details = {**event.details.to_json(), "sequence": None}
    return event.kind, event.subject, event.message, event.cpu, details


@pytest.mark.live
@pytest.mark.root
def test_the_lines_of_one_oom_kill_are_one_event(collected: Collected) -> None:
    tag, pid = f"nodescope-oom-{os.getpid()}: ", os.getpid()
    write_line(
        f"{tag}oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
        f"oom_memcg=/a,task_memcg=/a/b,task=java,pid={pid},uid=0"
    )
    killed = f"{tag}Memory cgroup out of memory: Killed process {pid} (java) total-vm:8kB, "
    last = write_line(f"{killed}anon-rss:4kB, file-rss:0kB").text
    wait_for(lambda: collected.has(last), last)
    assert len([event for event in collected.events if event.message.startswith(tag)]) == 1


@pytest.mark.live
@pytest.mark.root
def test_a_flood_is_read_in_portions_and_what_was_overwritten_is_counted(
    collected: Collected,
) -> None:
    tag = f"nodescope-flood-{os.getpid()}"
    first = write_line(f"{tag} first").text
    wait_for(lambda: collected.has(first), first)
    lines = 2 * ring_bytes() // 100
    for number in range(lines):
        write_line(f"{tag} {number:06d} {'x' * 80}")
    last = write_line(f"{tag} last").text
    wait_for(lambda: collected.has(last), last)
    assert collected.largest <= MOST_LINES
    assert collected.lost > 0
    sequences = [row.sequence for row in collected.rows]
    assert len(sequences) == len(set(sequences))
    at = next(row.sequence for row in collected.rows if row.text == first)
    until = next(row.sequence for row in collected.rows if row.text == last)
    seen = sum(at <= sequence <= until for sequence in sequences)
    assert seen + collected.lost >= until - at + 1 >= lines + 2


def _append(archive: Path, said: Observation, *, events_only: bool = False) -> None:
    """As the recorder does it; `events_only` is where a kill cut a flush short."""
    clock = SystemClock()
    with ArchiveWriter.open(archive, node=read_node(), clock=clock, tick_ns=1000) as writer:
        heartbeat = HeartbeatRow(time_ns=clock.monotonic_ns(), wall_ns=clock.wall_ns())
        lines = [] if events_only else said.rows
        for table, columns in columns_by_table(
            [heartbeat, *lines, *event_rows(said.events)]
        ).items():
            writer.append(table, columns)


@pytest.mark.live
@pytest.mark.root
def test_an_event_whose_line_was_not_yet_written_is_not_told_again(tmp_path: Path) -> None:
    archive, tag = tmp_path / "archive", f"nodescope-torn-{os.getpid()}"

    def collect(until: str) -> Observation:
        observer = kernel_log.make(Setting(Places(), archive))
        collected = Collected(observer)
        wait_for(lambda: collected.has(until), until)
        observer.close()
        return Observation([*collected.rows], collected.events)

    first = write_line(f"{tag}: ena 0000:90:00.0 eth0: Trigger reset is on").text
    _append(archive, collect(first))
    second = write_line(f"{tag}: ena 0000:90:00.0 eth1: Trigger reset is on").text
    said = collect(second)
    assert first not in [row.text for row in said.rows_of(KernelLogRow)]
    _append(archive, said, events_only=True)
    again = collect(second)
    assert second in [row.text for row in again.rows_of(KernelLogRow)]
    assert not [event for event in again.events if event.message.startswith(tag)]


@pytest.mark.live
@pytest.mark.root
def test_what_happened_to_a_device_is_known_to_those_who_count_it(tmp_path: Path) -> None:
    setting = Setting(Places(), tmp_path / "none")
    observer = kernel_log.make(setting)
    collected = Collected(observer)
    tag = f"nodescope-reports-{os.getpid()}: "
    reset = write_line(f"{tag}ena 0000:90:00.0 re0: Trigger reset is on")
    resets = "bnxt_en 0000:91:00.0 re1: TX timeout detected, starting reset task!"
    last = write_line(f"{tag}{resets}").text
    wait_for(lambda: collected.has(last), last)
    observer.close()
    told = setting.log_reports.told
    assert told("nic_reset", ("re0",), reset.before_ns - MILLISECOND_NS)
    assert told("nic_reset", ("0000:90:00.0",), reset.before_ns - MILLISECOND_NS)
    assert not told("nic_tx_timeout", ("re0",), 0)
    assert told("nic_tx_timeout", ("re1",), 0)
    assert told("nic_reset", ("re1",), 0)  # its line says so
    assert not told("nic_reset", ("re2",), 0)


def test_without_an_archive_nothing_was_told(tmp_path: Path) -> None:
    assert read_told(tmp_path / "none", "boot").sequence == -1


@pytest.mark.live
@pytest.mark.root
@pytest.mark.timeout(900)  # starts a recorder three times, on however busy a machine
def test_restarts_tell_every_line_once_even_after_kill_9(tmp_path: Path) -> None:
    archive, tag = tmp_path / "archive", f"nodescope-restart-{os.getpid()}"
    written: list[str] = []

    def write() -> None:
        written.append(
            write_line(f"{tag}: ena 0000:90:00.0 e{len(written)}: Trigger reset is on").text
        )

    def flushed() -> bool:
        return archive.is_dir() and written[-1] in _texts(archive, "kernel_log", "text")

    for end in (signal.SIGKILL, signal.SIGTERM):
        write()  # while none runs
        process = subprocess.Popen([sys.executable, "-c", RECORD, str(archive)])
        try:
            wait_for(flushed, f"{written[-1]} in the archive", 150, process=process)
            write()
            wait_for(flushed, f"{written[-1]} in the archive", 150, process=process)
            write()  # perhaps read, perhaps flushed, when the end comes
        finally:
            process.send_signal(end)
            process.wait()
    write()
    process = subprocess.Popen([sys.executable, "-c", RECORD, str(archive)])
    try:
        wait_for(flushed, "the last line in the archive", 150, process=process)
    finally:
        process.terminate()
        process.wait()
    lines = Counter(_texts(archive, "kernel_log", "text"))
    events = Counter(_texts(archive, "events", "message"))
    assert {text: lines[text] for text in written} == dict.fromkeys(written, 1)
    assert {text: events[text] for text in written} == dict.fromkeys(written, 1)
    # Resets are serious: what surrounds them is kept, and that is told.
    assert {frozen.id[:5] for frozen in read_frozen(archive)} == {"auto-"}
    assert "frozen" in _texts(archive, "events", "kind")


def _texts(archive: Path, table: str, column: str) -> list[str]:
    try:
        segments = Archive.open(archive).segments()
        return [
            text for segment in segments for text in segment.read(table).column(column).to_pylist()
        ]
    except ArchiveError:
        return []  # just being made
