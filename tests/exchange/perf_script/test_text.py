from __future__ import annotations

import bz2
import gzip
import lzma
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exchange.text_archive import Parsed, import_file, in_blocks, parsed, read_samples

from nodescope.archive.reader import Archive
from nodescope.errors import MalformedSource
from nodescope.exchange.import_files import import_files
from nodescope.exchange.import_formats import find_format
from nodescope.exchange.perf_script import text as perf_script
from nodescope.exchange.perf_script.text import looks_like_perf_script, parse_perf_script
from nodescope.ingest.parsed import UNKNOWN_FRAME, Notes, ParsedFrame

KUBELET = b"""\
kubelet  1871/1934  [039]  9000.123456:   10309278 cpu-clock:ppp:
\tffffffff8120a1b4 mem_cgroup_nr_lru_pages+0x54 ([kernel.kallsyms])
\tffffffff8120a9f0 memcg_numa_stat_show+0x1a0 ([kernel.kallsyms])
\tffffffffc0a1b010 nf_conntrack_in+0x10 ([nf_conntrack])
\t          46d3ce runtime/internal/syscall.Syscall6+0xe (/usr/bin/kubelet)
\t          4a0d11 [unknown] (/usr/bin/kubelet)

"""


def parse(text: bytes, notes: Notes | None = None) -> list[Parsed]:
    return parsed(parse_perf_script([text], notes or Notes()))


def header(line: str) -> Parsed:
    samples = parse(line.encode() + b"\n\t    7f00deadbeef work+0x1 (/bin/work)\n\n")
    assert len(samples) == 1, line
    assert samples[0].stack == ("work",)
    return samples[0]


def test_a_sample_gives_all_it_says() -> None:
    (sample,) = parse(KUBELET)
    assert sample.time_ns == 9000_123456_000
    assert (sample.cpu, sample.pid, sample.tid) == (39, 1871, 1934)
    assert (sample.comm, sample.kernel) == ("kubelet", True)
    assert sample.frames == (
        ParsedFrame("/usr/bin/kubelet", "+0x4a0d11", False),
        ParsedFrame("/usr/bin/kubelet", "runtime/internal/syscall.Syscall6", False),
        ParsedFrame("[nf_conntrack]", "nf_conntrack_in", True),
        ParsedFrame("[kernel]", "memcg_numa_stat_show", True),
        ParsedFrame("[kernel]", "mem_cgroup_nr_lru_pages", True),
    )


@pytest.mark.parametrize(
    "comm",
    [
        "python3", "kworker/0:1", "kworker/u8:3-events", "Web Content", "C2 CompilerThre",
        "(sd-pam)", ":1234", "a 12 34", "x [000] y", "1 2 3", "swapper", "ünïcode", "cafe",
        "GC Thread#0", "1.5: cycles:", "12/34",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("form", "pid", "tid", "cpu"),
    [
        ("{} 77 [001] 5.000001: 99 cycles:", 77, 77, 1),
        ("{}    77/78    [001]     5.000001:     250000 cpu-clock:pppH: ", 77, 78, 1),
        ("{}    77/78    5.000001: cycles:u: ", 77, 78, -1),
        ("{} 77 5.000001000: 1 cycles: ", 77, 77, -1),
        ("{:>16} 77/78 [001] 5.000001:", 77, 78, 1),
        ("{} 77/78 [001] KE     5.000001: 10 cycles:", 77, 78, 1),
    ],
)
def test_comms_keep_their_names(comm: str, form: str, pid: int, tid: int, cpu: int) -> None:
    sample = header(form.format(comm))
    assert sample.comm == comm
    assert (sample.pid, sample.tid, sample.cpu) == (pid, tid, cpu)
    assert sample.time_ns == 5_000_001_000


def test_a_text_with_thread_ids_only_says_so() -> None:
    notes = Notes()
    parse(KUBELET, notes)
    assert notes.remarks == []
    parse(KUBELET.replace(b"1871/1934", b"1934"), notes)
    assert "threads" in notes.remarks[0]


def test_a_comm_may_be_empty_and_a_pid_unknown() -> None:
    assert header("  77 [001] 5.000001: 1 cycles:").comm == ""
    assert header(":-1 -1/-1 [001] 5.000001: 1 cycles:").pid == -1


def test_samples_may_come_in_any_order() -> None:
    late = KUBELET.replace(b"9000.1", b"9001.1")
    notes = Notes()
    times = [sample.time_ns for sample in parse(late + KUBELET + late, notes)]
    assert times == [9001_123456_000, 9000_123456_000, 9001_123456_000]
    assert notes.out_of_order == 1


def test_samples_without_a_stack() -> None:
    text = b"sleep 5/5 [000] 1.000001: 1 cycles: \n\n" + KUBELET
    first, second = parse(text)
    assert first.frames == ()
    assert not first.kernel
    assert len(second.frames) == 5


def test_a_text_without_call_chains_has_one_line_a_sample() -> None:
    text = b"""\
         swapper     0 [000]  10.000001: 99 cpu-clock:  ffffffff81c0 idle+0xb ([kernel.kallsyms])
         python3    17 [001]  10.000002: 99 cpu-clock:      7f12 _PyEval+0x1 (/usr/bin/python3.11)
              dd     4 [001]  10.000003: 99 cpu-clock:  ffffffff81c0 idle+0xb ([kernel.kallsyms])
     kworker/0:1    18 [001]  10.000003: 99 cpu-clock:  ffffffff81c0 idle+0xb ([kernel.kallsyms])
"""
    samples = parse(text)
    assert [sample.comm for sample in samples] == ["swapper", "python3", "dd", "kworker/0:1"]
    assert [sample.stack for sample in samples] == [
        ("idle",), ("_PyEval",), ("idle",), ("idle",),
    ]  # fmt: skip


def test_headers_of_perf_are_facts() -> None:
    notes = Notes()
    text = b"""\
# ========
# captured on    : Mon Nov 16 03:08:22 2026
# hostname : node-7
# os release : 6.1.0
# time of last sample : 9000.123456
# ========
#
"""
    assert len(parse(text + KUBELET, notes)) == 1
    assert notes.facts["hostname"] == "node-7"
    assert notes.facts["captured on"] == "Mon Nov 16 03:08:22 2026"
    assert not notes.skipped


def test_lost_samples_are_counted_and_not_sampled() -> None:
    notes = Notes()
    text = b"swapper 0 [001] 9000.2: PERF_RECORD_LOST lost 12\n".replace(b".2:", b".200000:")
    assert len(parse(KUBELET + text + b"\n" + KUBELET, notes)) == 2
    assert notes.lost == 12


def test_traced_events_are_not_mixed_with_measured_ones() -> None:
    notes = Notes()
    traced = b"bash 5/5 [000] 1.000001: sched:sched_switch: prev_comm=bash ==> next\n\n"
    assert len(parse(KUBELET + traced * 3 + KUBELET, notes)) == 2
    assert notes.skipped == {"samples of traced events: sched:sched_switch:": 3}
    assert len(parse(traced * 3)) == 3


def test_inlined_functions_source_lines_and_unknown_frames() -> None:
    text = b"""\
app  7/7 [000] 1.000001: 1 cycles:
\t            1139 inner (inlined)
\t            1139 middle (inlined)
\t            1139 outer+0x9 (/srv/my app/bin (deleted))
  main.c:12
\t    7f0000000001 [unknown] ([unknown])
\t    7f0000000002 [unknown] ([unknown])
\t            2000 std::function<void (int)>::operator()(int) const (/usr/lib/libx.so)
\tffffffff81000001 [unknown] ([kernel.kallsyms])

"""
    (sample,) = parse(text)
    assert sample.frames == (
        ParsedFrame("[kernel]", "+0xffffffff81000001", True),
        ParsedFrame("/usr/lib/libx.so", "std::function<void (int)>::operator()(int) const", False),
        UNKNOWN_FRAME,
        ParsedFrame("/srv/my app/bin (deleted)", "outer", False),
        ParsedFrame("/srv/my app/bin (deleted)", "middle", False),
        ParsedFrame("/srv/my app/bin (deleted)", "inner", False),
    )


def test_stacks_at_the_kernels_limit_are_counted() -> None:
    notes = Notes()
    deep = b"x 1 [0] 1.000001: 1 cycles:\n" + b"\t7f12 recurse+0x1 (/bin/x)\n" * 127 + b"\n"
    assert [len(sample.frames) for sample in parse(deep * 2 + KUBELET, notes)] == [127, 127, 5]
    assert notes.truncated == 2


def test_carriage_returns_do_not_matter() -> None:
    assert parse(KUBELET.replace(b"\n", b"\r\n")) == parse(KUBELET)


@given(st.integers(1, 400), st.integers(1, 6))
def test_where_blocks_are_cut_does_not_matter(size: int, copies: int) -> None:
    text = b"".join(
        KUBELET.replace(b"9000.1", b"%d.1" % second).replace(b"memcg", b"memcg%d" % (second % 3))
        for second in range(copies)
    )
    notes = Notes()
    assert parsed(parse_perf_script(in_blocks(text, size), notes)) == parse(text)
    assert notes.stopped is None
    assert notes.offset == len(text)


def test_numbers_that_cannot_be_are_left_out() -> None:
    notes = Notes()
    text = KUBELET + KUBELET.replace(b"9000.", b"4999999999.")
    text += KUBELET.replace(b"1871/1934", b"9999999999/1") + KUBELET.replace(b"[039]", b"[40000]")
    assert len(parse(text, notes)) == 1
    assert notes.skipped == {"samples with impossible numbers": 3}


def test_numbering_starts_anew_before_it_grows_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_script, "MAX_PATHS", 3)
    text = b"".join(KUBELET.replace(b"memcg", b"memcg%d" % number) for number in range(40))
    batches = list(parse_perf_script(in_blocks(text, 900), Notes()))
    assert len({id(batch.names) for batch in batches}) > 5
    assert parsed(batches) == parse(text)


def test_what_it_is_recognised_by() -> None:
    assert looks_like_perf_script(KUBELET)
    assert looks_like_perf_script(b"# ========\n# captured on    : Mon\n")
    assert not looks_like_perf_script(b"[    1.000000] Linux version\n" * 9)
    assert not looks_like_perf_script(b"a;b;c 12\n" * 9)
    assert not looks_like_perf_script(b"")


def pack_zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


PACKERS = {"gz": gzip.compress, "zst": pack_zstd, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("suffix", ["stacks", *PACKERS])
def test_packed_files_are_imported_alike(suffix: str, tmp_path: Path) -> None:
    text = b"".join(KUBELET.replace(b"9000.1", b"%d.1" % second) for second in range(9000, 9300))
    path = tmp_path / f"perf.{suffix}"
    path.write_bytes(PACKERS[suffix](text) if suffix in PACKERS else text)
    os.utime(path, ns=(0, 1_700_000_000_000_000_000))
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_samples(archive)
    assert len(rows) == 300 == report.samples
    # Without anything better, the last sample is as old as the file.
    assert rows[-1].wall_ns == 1_700_000_000_000_000_000
    assert rows[0].wall_ns == rows[-1].wall_ns - 299_000_000_000
    assert rows[0].stack[-1] == "mem_cgroup_nr_lru_pages"
    assert len(archive.segments()) > 0
    assert report.stopped_at is None


@pytest.mark.parametrize("suffix", list(PACKERS))
def test_a_packed_file_that_is_cut_gives_what_is_whole(suffix: str, tmp_path: Path) -> None:
    lines = [
        KUBELET.replace(b"9000.123456", b"%d.%06d" % (9000 + n // 100, n * 7919 % 1_000_000))
        for n in range(30_000)
    ]
    packed = PACKERS[suffix](b"".join(lines))
    path = tmp_path / f"cut.{suffix}"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    report, archive = import_file(path, tmp_path / "archive")
    assert 0 < report.samples < 30_000
    assert report.stopped_at is not None
    assert "unpacked" in report.stopped_why
    assert len(read_samples(archive)) == report.samples


def test_the_name_of_the_file_places_it(tmp_path: Path) -> None:
    path = tmp_path / "perf-node-7-20261116-03-08-22-120s.stacks"
    path.write_bytes(KUBELET)
    report, archive = import_file(path, tmp_path / "archive")
    (row,) = read_samples(archive)
    assert report.node == "node-7"
    assert "name" in report.clock_source
    expected = 1_794_798_502  # 2026-11-16 03:08:22 UTC
    assert row.wall_ns == (expected + local_offset(expected)) * 1_000_000_000


def local_offset(moment: int) -> int:
    return -time.localtime(moment).tm_gmtoff


def test_a_time_of_day_beside_the_time_places_it(tmp_path: Path) -> None:
    path = tmp_path / "tod.txt"
    with_day = b"[039] 2026-11-16 03:08:22.500000  9000.123456:"
    path.write_bytes(KUBELET.replace(b"[039]  9000.123456:", with_day))
    _, archive = import_file(path, tmp_path / "archive")
    (row,) = read_samples(archive)
    expected = 1_794_798_502
    assert row.wall_ns == (expected + local_offset(expected)) * 1_000_000_000 + 500_000_000


def test_a_file_cut_inside_a_line_says_where(tmp_path: Path) -> None:
    text = KUBELET * 3
    cut = text.rindex(b"nf_conntrack_in") + 4
    path = tmp_path / "cut.txt"
    path.write_bytes(text[:cut])
    report, archive = import_file(path, tmp_path / "archive")
    assert report.samples == 3
    assert report.stopped_at == text.rindex(b"\tffffffffc0a1b010")
    assert "middle of a line" in report.stopped_why
    assert [len(row.stack) for row in read_samples(archive)] == [5, 5, 2]


def test_gigabytes_of_nothing_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perf_script, "MAX_GARBAGE_BYTES", 1 << 20)
    notes = Notes()
    blocks = iter([b"x" * (1 << 20)] * 100)
    assert parsed(parse_perf_script(blocks, notes)) == []
    assert notes.stopped is not None
    assert next(blocks)  # it did not read to the end


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prose.txt"
    path.write_text("It was the best of times, it was the worst of times.\n" * 50)
    with pytest.raises(MalformedSource, match="not a capture"):
        find_format(path)


def test_a_folder_of_rolling_captures_is_one_timeline(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for minute, kind in ((8, "first"), (10, "second"), (15, "third")):
        text = b"".join(
            KUBELET.replace(b"9000.1", b"%d.1" % (9000 + second)).replace(
                b"kubelet ", kind.encode()
            )
            for second in range(120)
        )
        (folder / f"perf-node-7-20261116-03-{minute:02d}-00-120s.stacks").write_bytes(text)
    (folder / "notes.txt").write_text("not a capture\n")
    imported = import_files([folder], tmp_path / "archive")
    assert [report.samples for report in imported.reports] == [120, 120, 120]
    assert [path.name for path in imported.skipped] == ["notes.txt"]
    archive = Archive.open(tmp_path / "archive")
    rows = read_samples(archive)
    assert [row.comm for row in rows[::120]] == ["first", "second", "third"]
    minutes = [(row.wall_ns - rows[0].wall_ns) // 60_000_000_000 for row in rows[::120]]
    assert minutes == [0, 2, 7]
    gaps = [gap for segment in archive.segments() for gap in segment.description.gaps]
    assert gaps[-1].to_ns == rows[240].wall_ns
    assert gaps[-1].to_ns - gaps[-1].from_ns > 179_000_000_000
