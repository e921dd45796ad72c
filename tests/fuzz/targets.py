"""One target per parser: anything in, nothing but our own errors out.

`SEEDS` are what to begin with. `run_targets` runs them under atheris.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tests.exchange import perf_files

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.errors import NodescopeError
from nodescope.exchange.core_times import mpstat, sar
from nodescope.exchange.glance import read_glance
from nodescope.exchange.logs import dmesg_json, journal, kernel_log
from nodescope.exchange.perf_data import importer as perf_data
from nodescope.exchange.perf_script import text as perf_script
from nodescope.exchange.profiles import folded, pprof, untimed_script
from nodescope.exchange.profiles.spread import span_of, spread
from nodescope.ingest.clean_text import MAX_LINE_BYTES
from nodescope.ingest.parsed import Notes, ParsedNames, ParsedSamples, Reading
from nodescope.ingest.samples import SampleRows
from nodescope.ingest.sink import Capture
from nodescope.ingest.sink import ImportNames as SampleNames
from nodescope.records.event import Event
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.witness_tables import CallTraceRow

NOWHERE = Path("fuzzed")


def check_samples(samples: ParsedSamples) -> None:
    """What every archive relies on."""
    names = samples.names
    for column in (samples.cpu, samples.pid, samples.tid, samples.comm, samples.path):
        assert len(column) == len(samples)
    if not len(samples):
        return
    assert 0 <= samples.time_ns.min() <= samples.time_ns.max() <= MAX_TIME_NS
    assert -1 <= samples.cpu.min() <= samples.cpu.max() < 1 << 15
    assert -(1 << 31) <= samples.pid.min() <= samples.pid.max() < 1 << 31
    assert 0 <= samples.comm.min() <= samples.comm.max() < len(names.comms)
    assert 0 <= samples.path.min() <= samples.path.max() < len(names.paths)
    for frame in names.frames:
        assert is_clean(frame.name)
        assert is_clean(frame.module)
        assert frame.name
    assert all(map(is_clean, names.comms))


def is_clean(text: str) -> bool:
    text.encode()  # no lone surrogates
    return not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in text)


def check_events(events: list[Event]) -> None:
    for event in events:
        assert 0 <= event.time_ns <= MAX_TIME_NS
        assert event.kind in EVENT_KINDS
        assert event.cpu is None or 0 <= event.cpu < 1 << 15
        json.dumps(event.details.to_json(), allow_nan=False)
        assert event.subject
        assert is_clean(event.subject)
        assert is_clean(event.message)
        assert len(event.message) <= MAX_LINE_BYTES


def check_readings(readings: list[Reading]) -> None:
    for reading in readings:
        assert 0 <= reading.cpu < 1 << 15
        assert len(reading.ticks) == 10
        assert all(0 <= count < 1 << 62 for count in reading.ticks)


def check_notes(notes: Notes, size: int) -> None:
    assert 0 <= notes.offset <= size
    assert (notes.stopped is None) or notes.stopped


def fuzz_perf_script(data: bytes) -> None:
    notes = Notes()
    perf_script.looks_like_perf_script(data[:65536])
    for samples in perf_script.parse_perf_script([data[:77], data[77:]], notes):
        check_samples(samples)
    check_notes(notes, len(data))


def fuzz_folded(data: bytes) -> None:
    notes, names = Notes(), ParsedNames()
    folded.looks_like_folded(data)
    counted = folded.parse_folded([data], names, notes)
    if counted:
        check_samples(spread(counted, names, 0, span_of(counted), notes))
    check_notes(notes, len(data))


def fuzz_untimed_script(data: bytes) -> None:
    names, notes = ParsedNames(), Notes()
    untimed_script.looks_like_untimed_script(data)
    counted = untimed_script.parse_untimed_script([data[:50], data[50:]], names, notes)
    if counted:
        check_samples(spread(counted, names, 0, span_of(counted), notes))


def fuzz_pprof(data: bytes) -> None:
    notes, names = Notes(), ParsedNames()
    pprof.looks_like_pprof(data)
    try:
        counted = pprof.count_stacks(pprof.parse_profile(data, notes), names, notes, NOWHERE)
    except NodescopeError:
        return
    if counted:
        check_samples(spread(counted, names, 0, 10**9, notes))
    check_notes(notes, len(data))


def fuzz_mpstat(data: bytes) -> None:
    notes = Notes()
    mpstat.looks_like_mpstat(data)
    for readings in mpstat.parse_mpstat([data[:100], data[100:]], notes):
        check_readings(readings)


def fuzz_sar(data: bytes) -> None:
    notes = Notes()
    sar.looks_like_sar(data)
    for readings in sar.parse_sar([data], notes):
        check_readings(readings)
    check_notes(notes, len(data))


def fuzz_kernel_log(data: bytes) -> None:
    notes = Notes()
    kernel_log.looks_like_kernel_log(data)
    for events in kernel_log.parse_kernel_log([data[:50], data[50:]], notes):
        check_events(events)
    check_traces(notes)
    check_notes(notes, len(data))


def fuzz_dmesg_json(data: bytes) -> None:
    notes = Notes()
    dmesg_json.looks_like_dmesg_json(data)
    lines = dmesg_json.plain_lines([data[:50], data[50:]])
    for events in kernel_log.parse_kernel_log(lines, notes):
        check_events(events)
    check_traces(notes)


def check_traces(notes: Notes) -> None:
    """What the table of call traces relies on."""
    for row in notes.rows:
        assert isinstance(row, CallTraceRow)
        assert 0 <= row.time_ns <= MAX_TIME_NS
        assert is_clean(row.stack)
        assert is_clean(row.comm or "")
        assert all(row.stack.split(";"))
        assert row.cpu is None or 0 <= row.cpu < 1 << 15
        assert row.pid is None or 0 <= row.pid < 1 << 31


def fuzz_journal(data: bytes) -> None:
    for looks, parse in (
        (journal.looks_like_journal_json, journal.parse_journal_json),
        (journal.looks_like_journal_text, journal.parse_journal_text),
    ):
        notes = Notes()
        looks(data)
        for events in parse([data], notes):
            check_events(events)
        check_traces(notes)
        check_notes(notes, len(data))


class CheckingSink:
    """Takes an importer's rows, and holds them to what the archive relies on."""

    def __init__(self) -> None:
        self.begun = False
        self.samples_seen = 0

    def begin(self, capture: Capture) -> None:
        assert not self.begun
        assert capture.tick_ns > 0
        self.begun = True

    def samples(self, rows: SampleRows, names: SampleNames) -> None:
        assert self.begun
        self.samples_seen += len(rows.time_ns)
        for column, most in (
            (rows.cpu, 1 << 15),
            (rows.pid, 1 << 32),
            (rows.tid, 1 << 32),
            (rows.comm, len(names.comms)),
            (rows.kernel_mode, 2),
            (rows.user, len(names.paths)),
            (rows.kernel, len(names.paths)),
        ):
            assert len(column) == len(rows.time_ns)
            assert not len(column) or -1 <= int(column.min()) <= int(column.max()) < most
        for path in map(names.paths.__getitem__, range(len(names.paths))):
            assert all(0 <= frame < len(names.frames) for frame in path)

    def append(self, table: str, columns: Mapping[str, Any]) -> None:
        assert table in ("events", "gaps", "cores")
        assert len({len(values) for values in columns.values()}) == 1

    def observed(self, observer: str) -> None:
        assert observer

    def lost(self, records: int) -> None:
        assert records >= 0


_MEMORY_FILE = os.memfd_create("fuzzed")


def fuzz_perf_data(data: bytes) -> None:
    os.ftruncate(_MEMORY_FILE, 0)
    os.pwrite(_MEMORY_FILE, data, 0)
    path = Path(f"/proc/self/fd/{_MEMORY_FILE}")
    sink = CheckingSink()
    try:
        report = perf_data.FORMAT.import_(path, sink, lambda done: None)
    except NodescopeError:
        report = None
    if report is not None:
        assert report.malformed >= 0
        assert report.stopped_at is None or 0 <= report.stopped_at <= len(data)
    try:
        glance = read_glance(path)
    except NodescopeError:
        assert report is None
        return
    assert np.all(glance.time_ns < 1 << 63)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "perf_data": fuzz_perf_data,
    "perf_script": fuzz_perf_script,
    "folded": fuzz_folded,
    "untimed_script": fuzz_untimed_script,
    "pprof": fuzz_pprof,
    "mpstat": fuzz_mpstat,
    "sar": fuzz_sar,
    "kernel_log": fuzz_kernel_log,
    "dmesg_json": fuzz_dmesg_json,
    "journal": fuzz_journal,
}

_LOAD = {"cpu": "0", "usr": 1.5, "sys": 98.5, "idle": 0.0}
_ENTRY = {"__REALTIME_TIMESTAMP": "1794798502123456", "_TRANSPORT": "kernel", "MESSAGE": [104, 27]}
_CLOCK = perf_files.Event()
_RECORDS = (
    _CLOCK.comm(10, 0, "python3")
    + _CLOCK.mmap2(10, 0, 0x400000, 0x9000, "/nowhere/x")
    + _CLOCK.mmap2(10, 0, 0x600000, 0x9000, "/nowhere/z", build_id=b"\1" * 20)
    + b"".join(
        _CLOCK.sample(10, 5 * 10**12 + i * 1000, kernel=[0xFFFFFFFF81000010], user=[0x401000 + i])
        for i in range(9)
    )
    + _CLOCK.fork(11, 10, 5 * 10**12 + 500)
    + _CLOCK.comm(11, 5 * 10**12 + 600, "ls", executed=True)
    + _CLOCK.sample(11, 5 * 10**12 + 700, user=[0x401000])
    + _CLOCK.lost(3, 5 * 10**12 + 900)
    + perf_files.FINISHED_ROUND
)
_CAPTURE = perf_files.File([_CLOCK], _RECORDS, clock=(5 * 10**12, 17 * 10**17))
SEEDS: dict[str, tuple[bytes, ...]] = {
    "perf_data": (_CAPTURE.content(), _CAPTURE.pipe()),
    "perf_script": ((
        b"# hostname : x\nWeb Content 12/13 [003] KE 5.000001: 99 cycles:ppp: \n"
        b"\tffffffff81000001 f+0x1 ([kernel.kallsyms])\n\t 7f00 g (inlined)\n"
        b"\t 7f00 h(int (*)(int)) (/a b (deleted))\n\n"
        b"x 1 6.000001: PERF_RECORD_LOST lost 3\n\nx 1 2026-11-16 03:08:22.123456 6.0: \n"
    ),),
    "folded": (b"x-1/2;a_[k];[libc.so];m`f 12\nkworker/0:1;b 3\n",),
    "untimed_script": (b"x 12/13 [001] cycles: \n\tffffffff81000001 f+0x1 (k)\n\n",),
    "pprof": ((
        b"\x0a\x04\x08\x01\x10\x02\x12\x08\x0a\x01\x01\x12\x01\x05\x1a\x00\x22\x06\x08\x01\x22\x02"
        b"\x08\x01\x2a\x04\x08\x01\x10\x03\x32\x00\x32\x07samples\x32\x05count\x32\x01f\x48\x01"
    ),),
    "mpstat": (
        json.dumps({"sysstat": {"hosts": [{"nodename": "x", "date": "11/16/26", "statistics": [
            {"timestamp": f"11:59:5{second} PM", "cpu-load": [_LOAD]} for second in range(6)
        ]}]}}).encode(),
    ),
    "sar": ((
        b"Linux 6.1 (x) \t11/16/26 \t_x86_64_\t(2 CPU)\n\n03:08:22 CPU %user %system %idle\n"
        b"03:08:23 all 1.00 2.00 97.00\n03:08:23 0 1,00 2,00 97,00\n03:08:24 PM 0 1.0 2.0 97.0\n"
    ),),
    "kernel_log": (
        b"<4>[   12.345678][  T1] ena 0000:90:00.0 eth0: x\n[Mon Nov 16 03:08:22 2026] y\n",
        b"4,1,123456,-;usb 1-1: x\n SUBSYSTEM=usb\nkern  :warn  : [    1.0] z\n",
        b"kern  :warn  : 2026-11-16T03:08:22,123456+00:00 rcu: INFO: x\n",
        (b"[    1.0][ T7] task:dd state:D stack:0 pid:12 tgid:12\n[    1.1][ T7] Call Trace:\n"
        b"[    1.1][ T7]  <TASK>\n[    1.1][ T7]  ? g+0x1/0x2\n[    1.1][ T7]  f+0x1/0x2 [m]\n"),
    ),
    "dmesg_json": (
        b'{\n"dmesg": [\n{\n"pri": 4,\n"time": 1.5,\n"msg": "Call Trace:\\n f+0x1/0x2"\n},{\n]}\n',
    ),
    "journal": (
        json.dumps(_ENTRY).encode() + b"\n",
        b"2026-11-16T03:08:22.123456+00:00 host kernel: [  1.0] ena 0000:90:00.0: x\n  more\n",
    ),
}  # fmt: skip
