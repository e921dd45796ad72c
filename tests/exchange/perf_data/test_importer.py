"""Files made to the byte: what each part of the format must come to."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from tests.exchange import perf_files as make
from tests.exchange.rows import read_rows, read_table

from nodescope.errors import MalformedSource
from nodescope.exchange.import_files import import_files
from nodescope.exchange.perf_data import importer as perf_data
from nodescope.ingest.sink import ImportReport
from nodescope.quantities import MILLISECOND_NS

CLOCK = make.Event()
T0 = 5_000_000_000_000
WALL = 1_700_000_000_000_000_000


def bring_in(tmp_path: Path, content: bytes, name: str = "perf.data") -> ImportReport:
    path = tmp_path / name
    path.write_bytes(content)
    os.utime(path, ns=(WALL, WALL))
    (report,) = import_files([path], tmp_path / "archive").reports
    return report


def some_samples(event: make.Event = CLOCK, count: int = 50) -> bytes:
    return event.comm(10, 0, "python3") + b"".join(
        event.sample(10, T0 + i * MILLISECOND_NS, cpu=i % 2, user=[0x401000 + i])
        for i in range(count)
    )


def test_names_clocks_and_node_come_from_the_file(tmp_path: Path) -> None:
    data = CLOCK.comm(10, 0, "python3") + CLOCK.comm(11, 0, "kworker/0:1")
    data += CLOCK.sample(10, T0, cpu=3, user=[0x401000])
    data += CLOCK.sample(11, T0 + MILLISECOND_NS, kernel=[0xFFFFFFFF81000010])
    file = make.File([CLOCK], data, clock=(T0, WALL))
    report = bring_in(tmp_path, file.content())
    rows = read_rows(tmp_path / "archive")
    assert [(row.comm, row.cpu, row.kernel) for row in rows] == [
        ("python3", 3, False),
        ("kworker/0:1", 0, True),
    ]
    assert [row.wall_ns for row in rows] == [WALL, WALL + MILLISECOND_NS]
    assert report.node == "alpha"
    assert report.samples == 2
    assert report.clock_source == "clock readings in the file"
    assert report.stopped_at is None


@pytest.mark.parametrize(
    ("sample_type", "read_format"),
    [
        (make.USUAL, 0),
        (make.IP | make.TID | make.TIME | make.PERIOD, 0),
        (make.USUAL | make.IDENTIFIER | make.ADDR | make.STREAM_ID, 0),
        (make.USUAL | make.READ, 0b10111),
        (make.USUAL | make.CGROUP, 0),
        (make.IDENTIFIER | make.IP | make.TID | make.TIME | make.CALLCHAIN, 0),
    ],
)
def test_fields_are_found_in_any_combination(
    tmp_path: Path, sample_type: int, read_format: int
) -> None:
    event = make.Event(sample_type=sample_type, read_format=read_format)
    data = event.comm(10, 0, "load") + event.sample(
        10, T0, tid=12, cpu=7, user=[0x401000, 0x402000]
    )
    bring_in(tmp_path, make.File([event], data).content())
    (row,) = read_rows(tmp_path / "archive")
    assert (row.time_ns, row.pid, row.tid) == (T0, 10, 12)
    assert row.cpu == (7 if sample_type & make.CPU else -1)
    assert len(row.stack) == 1  # unmapped: one unknown says as much as two


def test_what_follows_the_chain_is_passed_over(tmp_path: Path) -> None:
    raw = 1 << 10
    event = make.Event(sample_type=make.USUAL | raw | make.CGROUP)
    data = event.other(19, struct.pack("<Q", 99) + b"/pod1\0", 0, 0)
    data += event.sample(
        10, T0, user=[0x401000], cgroup=99, after=struct.pack("<I", 12) + b"\xff" * 12
    )
    bring_in(tmp_path, make.File([event], data).content())
    (row,) = read_rows(tmp_path / "archive")
    assert row.cgroup == "/pod1"


@pytest.mark.parametrize("read_format", [8, 8 | 4, 8 | 4 | 3, 8 | 16 | 4 | 3])
def test_counters_of_a_group_are_stepped_over(tmp_path: Path, read_format: int) -> None:
    event = make.Event(sample_type=make.USUAL | make.READ, read_format=read_format)
    data = b"".join(
        event.sample(10, T0 + at, kernel=[0xFFFFFFFF81000010], user=[0x401000 + at], group=3)
        for at in range(5)
    )
    odd = event.sample(10, T0 + 9, user=[0x401000], group=2)
    report = bring_in(tmp_path, make.File([event], data + odd).content())
    assert len(read_rows(tmp_path / "archive")) == 5
    assert report.malformed == 1


def test_only_events_of_cpu_time_are_taken_and_the_others_are_named(tmp_path: Path) -> None:
    faults = make.Event(make.PAGE_FAULTS, ids=(8, 9), name="page-faults")
    dummy = make.Event(make.DUMMY, ids=(5,), name="dummy:HG")
    data = (
        CLOCK.sample(10, T0)
        + faults.sample(10, T0 + MILLISECOND_NS)
        + faults.sample(10, T0 + 2 * MILLISECOND_NS)
    )
    report = bring_in(tmp_path, make.File([faults, CLOCK, dummy], data).content())
    assert report.samples == 1
    assert "2 samples of event page-faults are left out" in report.notes


def test_without_an_event_of_cpu_time_the_first_is_taken(tmp_path: Path) -> None:
    faults = make.Event(make.PAGE_FAULTS, ids=(8, 9), name="page-faults")
    report = bring_in(tmp_path, make.File([faults], some_samples(faults)).content())
    assert report.samples == 50
    assert not [note for note in report.notes if "left out" in note]


def test_records_are_taken_in_the_order_of_their_time(tmp_path: Path) -> None:
    data = CLOCK.sample(10, T0 + 3 * MILLISECOND_NS, cpu=1)
    data += CLOCK.comm(10, T0 + 2 * MILLISECOND_NS, "after")
    data += CLOCK.sample(10, T0 + MILLISECOND_NS, cpu=0)
    data += CLOCK.comm(10, T0, "before")
    report = bring_in(tmp_path, make.File([CLOCK], data).content())
    rows = read_rows(tmp_path / "archive")
    assert [(row.time_ns - T0, row.comm) for row in rows] == [
        (MILLISECOND_NS, "before"),
        (3 * MILLISECOND_NS, "after"),
    ]
    assert report.out_of_order == 1


def test_disorder_within_two_rounds_is_how_perf_writes(tmp_path: Path) -> None:
    data = b"".join(
        CLOCK.sample(10, T0 + turn * 10 * MILLISECOND_NS + (1 - cpu) * 5 * MILLISECOND_NS, cpu=cpu)
        + make.FINISHED_ROUND * cpu
        for turn in range(4)
        for cpu in range(2)
    )
    assert bring_in(tmp_path, make.File([CLOCK], data).content()).out_of_order == 0


def test_a_made_up_birth_gives_no_mappings_of_its_parent(tmp_path: Path) -> None:
    data = CLOCK.mmap2(1, 0, 0x400000, 0x10000, "/sbin/init", inode=3)
    data += CLOCK.fork(20, 1, 0, made_up=True) + CLOCK.comm(20, 0, "child")
    data += CLOCK.sample(20, T0, user=[0x401000]) + CLOCK.sample(
        1, T0 + MILLISECOND_NS, user=[0x401000]
    )
    bring_in(tmp_path, make.File([CLOCK], data).content())
    child, parent = read_rows(tmp_path / "archive")
    assert child.modules == ("[unknown]",)
    assert parent.modules == ("/sbin/init",)
    assert parent.stack == ("+0x1000",)


@pytest.mark.parametrize("batch_words", [1, 1 << 20])
def test_around_exec_an_address_is_what_was_mapped_there_at_that_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_words: int
) -> None:
    """A shell forks, the child executes one program and that another, all at the same place."""
    monkeypatch.setattr(perf_data, "_BATCH_WORDS", batch_words)
    at = 0x401000
    data = CLOCK.comm(10, 0, "sh") + CLOCK.mmap2(10, 0, at, 0x1000, "/bin/sh", inode=1)
    time = T0
    expected = []

    def sampled(name: str, module: str) -> bytes:
        nonlocal time
        time += MILLISECOND_NS
        expected.append((name, module))
        return CLOCK.sample(20, time, kernel=[0xFFFFFFFF81000010], user=[at + 0x10, at + 0x20])

    data += CLOCK.fork(20, 10, T0) + sampled("sh", "/bin/sh")
    for number, (old, new) in enumerate((("/bin/sh", "/bin/env"), ("/bin/env", "/bin/cat")), 2):
        data += CLOCK.comm(20, time + 1, new[5:], executed=True) + sampled(new[5:], old)
        data += CLOCK.mmap2(20, time + 1, at, 0x1000, new, inode=number) + sampled(new[5:], new)
    bring_in(tmp_path, make.File([CLOCK], data).content())
    rows = read_rows(tmp_path / "archive")
    assert [(row.comm, row.modules[0]) for row in rows] == expected


def test_a_negative_number_on_a_users_stack_is_no_frame_of_the_kernel(tmp_path: Path) -> None:
    """Without frame pointers a walk may meet what looks like the marker of a context."""
    chain = [0x401000, make.KERNEL, 0x402000]
    data = CLOCK.comm(10, 0, "app") + CLOCK.mmap2(10, 0, 0x400000, 0x10000, "/bin/app")
    data += CLOCK.sample(10, T0, user=chain)
    bring_in(tmp_path, make.File([CLOCK], data).content())
    (row,) = read_rows(tmp_path / "archive")
    assert row.stack == ("+0x2000", "+0x1000")


def test_a_child_has_its_parents_mappings_and_name_until_it_executes(tmp_path: Path) -> None:
    data = CLOCK.mmap2(1, 0, 0x400000, 0x10000, "/bin/sh", inode=3) + CLOCK.comm(1, 0, "sh")
    data += CLOCK.fork(20, 1, T0) + CLOCK.sample(20, T0 + MILLISECOND_NS, user=[0x401000])
    data += CLOCK.comm(20, T0 + 2 * MILLISECOND_NS, "ls", executed=True)
    data += CLOCK.mmap2(20, T0 + 2 * MILLISECOND_NS + 1, 0x500000, 0x10000, "/bin/ls", inode=4)
    data += CLOCK.sample(20, T0 + 3 * MILLISECOND_NS, user=[0x501000])
    bring_in(tmp_path, make.File([CLOCK], data).content())
    rows = read_rows(tmp_path / "archive")
    assert [(row.comm, row.modules) for row in rows] == [("sh", ("/bin/sh",)), ("ls", ("/bin/ls",))]


def test_a_name_outlasts_its_end_until_the_number_is_used_again(tmp_path: Path) -> None:
    data = CLOCK.comm(1, 0, "sh") + CLOCK.comm(20, 0, "gzip")
    data += CLOCK.other(4, struct.pack("<IIIIQ", 20, 1, 20, 1, T0), 20, T0)
    data += b"".join(
        CLOCK.sample(1, T0 + MILLISECOND_NS + i, user=[0x1000 + i] * 100) for i in range(11_000)
    )
    data += CLOCK.sample(20, T0 + 2 * MILLISECOND_NS)
    data += b"".join(
        CLOCK.sample(1, T0 + 3 * MILLISECOND_NS + i, user=[0x1000] * 100) for i in range(11_000)
    )
    data += CLOCK.fork(20, 1, T0 + 4 * MILLISECOND_NS) + CLOCK.sample(20, T0 + 5 * MILLISECOND_NS)
    bring_in(tmp_path, make.File([CLOCK], data).content())
    rows = [row for row in read_rows(tmp_path / "archive") if row.pid == 20]
    assert [row.comm for row in rows] == ["gzip", "sh"]


def test_mappings_without_inode_or_with_build_ids_are_told_apart(tmp_path: Path) -> None:
    data = CLOCK.mmap(1, 0, 0x400000, 0x1000, "/usr/lib/one")
    data += CLOCK.mmap(1, 0, 0x500000, 0x1000, "/usr/lib/two")
    data += CLOCK.mmap2(1, 0, 0x600000, 0x1000, "/usr/lib/three", build_id=b"\1" * 20)
    data += CLOCK.mmap2(1, 0, 0x700000, 0x1000, "/usr/lib/four", build_id=b"\2" * 16)
    data += CLOCK.mmap2(1, 0, 0x800000, 0x1000, "/usr/lib/five", build_id=b"")
    data += b"".join(
        CLOCK.sample(1, T0 + i * MILLISECOND_NS, user=[address])
        for i, address in enumerate(range(0x400000, 0x900000, 0x100000))
    )
    bring_in(tmp_path, make.File([CLOCK], data).content())
    modules = [row.modules[0].rpartition("/")[2] for row in read_rows(tmp_path / "archive")]
    assert modules == ["one", "two", "three", "four", "five"]


def test_losses_and_throttling_are_told(tmp_path: Path) -> None:
    data = some_samples() + CLOCK.lost(17, T0 + 60 * MILLISECOND_NS, cpu=1)
    data += CLOCK.other(5, struct.pack("<QQQ", T0, 1, 1), 0, T0 + 5 * MILLISECOND_NS, cpu=1)
    report = bring_in(tmp_path, make.File([CLOCK], data).content())
    assert (report.lost, report.throttled) == (17, 1)
    (gap,) = read_table(tmp_path / "archive", "gaps")
    assert (gap["from_ns"], gap["to_ns"], gap["cpu"], gap["lost"]) == (
        T0 + 49 * MILLISECOND_NS, T0 + 60 * MILLISECOND_NS, 1, 17,
    )  # fmt: skip
    events = read_table(tmp_path / "archive", "events")
    (event,) = [each for each in events if each["kind"] != "import"]
    assert (event["kind"], event["subject"]) == ("throttled", "cpu1")


def test_without_sample_id_all_names_still_hold(tmp_path: Path) -> None:
    event = make.Event(sample_id_all=False)
    bring_in(tmp_path, make.File([event], some_samples(event)).content())
    assert {row.comm for row in read_rows(tmp_path / "archive")} == {"python3"}


def test_unnamed_threads_are_called_as_perf_calls_them(tmp_path: Path) -> None:
    data = CLOCK.sample(0, T0) + CLOCK.sample(44, T0 + 1000) + CLOCK.sample(-1, T0 + 2000)
    bring_in(tmp_path, make.File([CLOCK], data).content())
    rows = read_rows(tmp_path / "archive")
    assert [(row.comm, row.pid) for row in rows] == [("swapper", 0), (":44", 44), (":-1", -1)]


def test_the_file_name_places_a_capture(tmp_path: Path) -> None:
    content = make.File([CLOCK], some_samples(), hostname=None).content()
    report = bring_in(tmp_path, content, "perf-node-7-20240229-23-59-58Z-120s.data")
    assert report.wall_from_ns == 1_709_251_198 * 1_000_000_000
    assert "name" in report.clock_source


def test_else_the_date_of_the_file_is_the_last_sample(tmp_path: Path) -> None:
    report = bring_in(tmp_path, make.File([CLOCK], some_samples()).content())
    assert report.wall_to_ns == WALL
    assert "date of change" in report.clock_source


def test_pipe_mode(tmp_path: Path) -> None:
    file = make.File([CLOCK], some_samples(), clock=(T0, WALL))
    report = bring_in(tmp_path, file.pipe())
    assert (report.samples, report.node, report.wall_from_ns) == (50, "alpha", WALL)
    assert {row.comm for row in read_rows(tmp_path / "archive")} == {"python3"}


def zstd_chunks(data: bytes, size: int) -> list[bytes]:
    """`data` as perf compresses it: one stream, flushed after every `size` bytes, never ended."""
    sink = io.BytesIO()
    stream = pa.CompressedOutputStream(pa.PythonFile(sink, mode="w"), "zstd")
    chunks, done = [], 0
    for at in range(0, len(data), size):
        stream.write(data[at : at + size])
        stream.flush()
        chunks.append(sink.getvalue()[done:])
        done += len(chunks[-1])
    return chunks


@pytest.mark.parametrize("kind", [81, 83])
def test_compressed_records_may_straddle_chunks(tmp_path: Path, kind: int) -> None:
    plain = CLOCK.comm(10, 0, "python3")
    data = plain
    for chunk in zstd_chunks(some_samples(count=500)[len(plain) :], 777):
        if kind == 83:
            data += make.record(83, struct.pack("<Q", len(chunk)) + chunk)
        else:
            data += struct.pack("<IHH", 81, 0, 8 + len(chunk)) + chunk
        data += make.FINISHED_ROUND
    report = bring_in(tmp_path, make.File([CLOCK], data).content())
    assert report.samples == 500
    assert {row.comm for row in read_rows(tmp_path / "archive")} == {"python3"}


def test_trace_data_is_stepped_over(tmp_path: Path) -> None:
    trace = make.record(71, struct.pack("<QQQIIII", 24, 0, 0, 0, 0, 0, 0)) + b"\xff" * 24
    data = some_samples() + trace + CLOCK.sample(10, T0 + 60 * MILLISECOND_NS)
    report = bring_in(tmp_path, make.File([CLOCK], data).content())
    assert (report.samples, report.stopped_at) == (51, None)


def test_a_cut_file_gives_what_is_whole_and_says_where_it_ends(tmp_path: Path) -> None:
    content = make.File([CLOCK], some_samples()).content()
    whole = content.index(CLOCK.sample(10, T0 + 30 * MILLISECOND_NS, cpu=0, user=[0x401000 + 30]))
    report = bring_in(tmp_path, content[: whole + 20])
    assert report.samples == 30
    assert report.stopped_at == whole
    assert "before its data should" in report.stopped_why


def test_a_killed_perf_leaves_no_size_and_no_features(tmp_path: Path) -> None:
    content = bytearray(make.File([CLOCK], some_samples()).content())
    end = content.index(make.File([CLOCK], b"").features()[3]) - 16 * 4
    content[48:56] = bytes(8)
    report = bring_in(tmp_path, bytes(content[:end]))
    assert report.samples == 50


def test_nonsense_from_some_offset_on(tmp_path: Path) -> None:
    data = some_samples() + struct.pack("<IHH", 9, 2, 3) + bytes(16)
    report = bring_in(tmp_path, make.File([CLOCK], data).content())
    assert report.samples == 50
    assert "says it has 3 bytes" in report.stopped_why


def test_a_file_of_the_other_byte_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedSource, match="byte order"):
        bring_in(tmp_path, b"2ELIFREP" + bytes(200))
