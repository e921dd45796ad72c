from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_rows, read_samples

from nodescope.exchange.profiles.folded import looks_like_folded, parse_folded, parse_frame
from nodescope.exchange.profiles.spread import MAX_SAMPLES, Counted, span_of, spread
from nodescope.ingest.parsed import UNKNOWN_FRAME, Notes, ParsedFrame, ParsedNames

FOLDED = b"""\
kubelet;main.main;read;do_syscall_64_[k];mem_cgroup_nr_lru_pages_[k] 65
python3-17/18;main;[libc.so.6];[unknown];[unknown] 35
kworker/0:1;kthread_[k];worker thread_[k] 100
"""


def parse(text: bytes, notes: Notes | None = None) -> tuple[list[Counted], ParsedNames]:
    names = ParsedNames()
    return parse_folded([text], names, notes or Notes()), names


def stack(counted: Counted, names: ParsedNames) -> tuple[str, ...]:
    return tuple(names.frames[number].name for number in names.paths[counted.path])


def test_comm_ids_annotations_and_counts() -> None:
    counted, names = parse(FOLDED)
    assert [names.comms[each.comm] for each in counted] == ["kubelet", "python3", "kworker/0:1"]
    assert [each.samples for each in counted] == [65, 35, 100]
    assert [(each.pid, each.tid) for each in counted] == [(-1, -1), (17, 18), (-1, -1)]
    assert stack(counted[0], names)[-1] == "mem_cgroup_nr_lru_pages"
    assert stack(counted[1], names) == ("main", "[unknown]", "[unknown]")
    assert names.in_kernel[counted[0].path]
    assert not names.in_kernel[counted[1].path]


@pytest.mark.parametrize(
    ("part", "frame"),
    [
        ("do_idle_[k]", ParsedFrame("[kernel]", "do_idle", True)),
        ("Lx;::run_[j]", ParsedFrame("[unknown]", "Lx;::run", False)),
        ("f_[i]", ParsedFrame("[unknown]", "f", False)),
        ("libc.so.1`read", ParsedFrame("libc.so.1", "read", False)),
        ("[libc.so.6]", ParsedFrame("libc.so.6", "[unknown]", False)),
        ("[unknown]", UNKNOWN_FRAME),
        ("", UNKNOWN_FRAME),
        ("a b", ParsedFrame("[unknown]", "a b", False)),
    ],
)
def test_frames(part: str, frame: ParsedFrame) -> None:
    assert parse_frame(part.encode()) == frame


def test_a_first_frame_that_is_no_comm_stays_a_frame() -> None:
    counted, names = parse(b"<module> (app.py:3);handler (app.py:9) 7\n")
    assert stack(counted[0], names) == ("<module> (app.py:3)", "handler (app.py:9)")
    assert names.comms[counted[0].comm] == "[unknown]"


def test_it_is_placed_before_the_file_was_written_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "out.folded"
    path.write_bytes(FOLDED)
    written_ns = 1_700_000_000_000_000_000
    os.utime(path, ns=(0, written_ns))
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_samples(archive)
    assert Counter(row.comm for row in rows) == {"kubelet": 65, "python3": 35, "kworker/0:1": 100}
    assert all(written_ns - 2_000_000_000 <= row.wall_ns <= written_ns for row in rows)
    # Each half shows the mix of the whole.
    early = Counter(row.comm for row in rows if row.wall_ns < written_ns - 1_000_000_000)
    assert early["kworker/0:1"] == 50
    assert 32 <= early["kubelet"] <= 33
    (said,) = read_rows(archive, "events")
    assert "without times" in said["message"]
    assert any("without times" in note for note in report.notes)
    assert report.idle == 0


def test_more_samples_than_fit_are_scaled_down_and_it_is_said() -> None:
    notes = Notes()
    counted, names = parse(b"a;b 30000000\na;c 10000000\na;d 1\n")
    assert span_of(counted) == 120_000_000_000
    samples = spread(counted, names, 0, span_of(counted), notes)
    assert len(samples) == MAX_SAMPLES
    by_path = Counter(samples.path.tolist())
    assert by_path[counted[0].path] == pytest.approx(MAX_SAMPLES * 0.75, abs=2)
    assert "scaled down" in notes.remarks[0]


def test_counts_that_cannot_be() -> None:
    notes = Notes()
    counted, _ = parse(b"a;b 0\na;b 999999999999999999\na;b\na;b 3\n# comment\n", notes)
    assert [each.samples for each in counted] == [3]
    assert notes.skipped.total() == 3


def test_what_it_is_recognised_by() -> None:
    assert looks_like_folded(FOLDED)
    assert not looks_like_folded(b"It was; the best\nof times 12\n")
    assert not looks_like_folded(b"just prose 12\n")
    assert not looks_like_folded(b"")


@pytest.mark.parametrize("start", ["ret_from_fork_asm_[k]", "ret_from_fork_[k]", "kthread_[k]"])
def test_long_names_of_kernel_threads_are_kept(start: str) -> None:
    counted, names = parse(f"kworker/0:2H-kblockd;{start};worker_thread_[k] 3\n".encode())
    assert names.comms[counted[0].comm] == "kworker/0:2H-kblockd"
    assert stack(counted[0], names)[-1] == "worker_thread"


def test_a_long_first_function_is_no_comm() -> None:
    counted, names = parse(b"java/lang/Thread.run;io/netty/Loop.run_[j] 3\n")
    assert names.comms[counted[0].comm] == "[unknown]"
    assert stack(counted[0], names)[0] == "java/lang/Thread.run"
