from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodescope.symbols import PerfMap, Reason
from nodescope.symbols.perf_map import MAX_FILE_BYTES, parse_perf_map

PID, NSPID = 4242, 7


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process = tmp_path / str(PID)
    (process / "root/tmp").mkdir(parents=True)
    uid = os.geteuid()
    (process / "status").write_text(
        f"Name:\tnode\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t{PID}\t{NSPID}\n"
    )
    return tmp_path


def map_file(proc: Path) -> Path:
    return proc / f"{PID}/root/tmp/perf-{NSPID}.map"


def resolve(perf_map: PerfMap, *addresses: int) -> list[str | None]:
    return perf_map.resolve(np.array(addresses, np.uint64))


def test_names_by_address(proc: Path) -> None:
    map_file(proc).write_text("1000 20 LazyCompile:~foo file.js:1\n0x1020 0x10 bar\n")
    perf_map = PerfMap(PID, proc)
    assert perf_map.update()
    assert resolve(perf_map, 0xFFF, 0x1000, 0x101F, 0x1020, 0x1030) == [
        None, "LazyCompile:~foo file.js:1", "LazyCompile:~foo file.js:1", "bar", None,
    ]  # fmt: skip


def test_growth_is_followed_and_half_lines_wait(proc: Path) -> None:
    map_file(proc).write_text("1000 20 foo\n2000 2")
    perf_map = PerfMap(PID, proc)
    perf_map.update()
    assert resolve(perf_map, 0x1000, 0x2000) == ["foo", None]
    with map_file(proc).open("a") as file:
        file.write("0 bar\n1000 20 foo again\n")
    assert perf_map.update()
    assert resolve(perf_map, 0x1000, 0x2000) == ["foo again", "bar"]
    assert not perf_map.update()


def test_a_new_file_replaces_the_old(proc: Path) -> None:
    map_file(proc).write_text("1000 20 old_function\n")
    perf_map = PerfMap(PID, proc)
    perf_map.update()
    map_file(proc).write_text("3000 20 new\n")
    perf_map.update()
    assert resolve(perf_map, 0x1000, 0x3000) == [None, "new"]


def test_somebody_elses_file_is_refused(proc: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: giving a file away")
    map_file(proc).write_text("1000 20 foo\n")
    os.chown(map_file(proc), 12345, 12345)
    perf_map = PerfMap(PID, proc)
    assert not perf_map.update()
    assert perf_map.failures == {Reason.DENIED: 1}


def test_absence_fifo_and_dead_processes_are_reasons(proc: Path) -> None:
    perf_map = PerfMap(PID, proc)
    assert not perf_map.update()
    os.mkfifo(map_file(proc))
    assert not perf_map.update()
    assert not PerfMap(1, proc / "nowhere").update()
    assert perf_map.failures == {Reason.ABSENT: 1, Reason.NOT_REGULAR: 1}


def test_a_huge_file_is_read_a_piece_at_a_time(proc: Path) -> None:
    map_file(proc).write_text("1000 20 foo\n" * 300_000)
    os.truncate(map_file(proc), MAX_FILE_BYTES * 2)
    perf_map = PerfMap(PID, proc)
    for _ in range(3):
        perf_map.update()
    assert resolve(perf_map, 0x1000) == ["foo"]
    assert perf_map.failures[Reason.TOO_LARGE] == 3
    perf_map.close()
    assert resolve(perf_map, 0x1000) == [None]


def end_process(proc: Path) -> None:
    shutil.rmtree(proc / str(PID))


def left_file(tmp_path: Path, text: str = "1000 20 foo\n") -> Path:
    """A map in a `/tmp` of our own."""
    path = tmp_path / "own" / f"perf-{PID}.map"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_map_that_is_open_outlives_its_process_with_all_that_was_written(proc: Path) -> None:
    map_file(proc).write_text("1000 20 foo\n")
    perf_map = PerfMap(PID, proc, own_tmp=proc / "own")
    assert perf_map.meet(time.monotonic_ns())
    with map_file(proc).open("a") as file:
        file.write("2000 20 bar\n")
    end_process(proc)
    assert perf_map.update()
    assert resolve(perf_map, 0x1000, 0x2000, 0x3000) == ["foo", "bar", None]
    assert perf_map.reason is Reason.NO_FUNCTION


def test_what_an_ended_process_left_in_our_own_tmp_is_read(proc: Path) -> None:
    (proc / "1").mkdir()
    uid = os.geteuid()
    (proc / "1/status").write_text(f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nNSpid:\t1\n")
    end_process(proc)
    perf_map = PerfMap(PID, proc, own_tmp=proc / "own")
    assert not perf_map.meet(time.monotonic_ns(), parent=1)
    assert perf_map.reason is Reason.PROCESS_GONE
    left_file(proc)
    assert perf_map.update()
    assert resolve(perf_map, 0x1000) == ["foo"]


def test_one_that_nobody_waited_for_has_a_status_and_no_files(proc: Path) -> None:
    (proc / f"{PID}/status").write_text(f"Uid:\t{os.geteuid()}\t0\t0\t0\nNSpid:\t{PID}\n")
    shutil.rmtree(proc / f"{PID}/root")
    left_file(proc)
    perf_map = PerfMap(PID, proc, own_tmp=proc / "own")
    assert perf_map.update()
    assert resolve(perf_map, 0x1000) == ["foo"]


def test_where_the_parent_is_gone_too_our_own_and_roots_maps_are_believed(proc: Path) -> None:
    end_process(proc)
    left_file(proc)
    assert PerfMap(PID, proc, own_tmp=proc / "own").meet(time.monotonic_ns(), parent=1)


def refused(proc: Path, mapped_ns: int | None = None, parent: int | None = None) -> Reason:
    perf_map = PerfMap(PID, proc, own_tmp=proc / "own")
    if mapped_ns is not None:
        perf_map.meet(mapped_ns, parent)
    assert not perf_map.update()
    assert resolve(perf_map, 0x1000) == [None]
    return perf_map.reason


def test_a_left_map_of_an_earlier_process_is_not_taken_for_this_ones(proc: Path) -> None:
    end_process(proc)
    old = time.time() - 60
    os.utime(left_file(proc), (old, old))
    assert refused(proc, time.monotonic_ns()) is Reason.PROCESS_GONE


def test_a_container_left_nothing_in_our_own_tmp(proc: Path) -> None:
    perf_map = PerfMap(PID, proc, own_tmp=proc / "own")
    perf_map.meet(time.monotonic_ns())  # it is NSPID in its own namespace
    end_process(proc)
    left_file(proc)
    assert not perf_map.update()
    assert perf_map.reason is Reason.PROCESS_GONE


def test_a_link_is_followed_neither_in_our_tmp_nor_in_the_processs(proc: Path) -> None:
    real = left_file(proc)
    map_file(proc).symlink_to(real)
    assert refused(proc) is Reason.NOT_REGULAR
    end_process(proc)
    real.rename(proc / "real")
    real.symlink_to(proc / "real")
    assert refused(proc) is Reason.NOT_REGULAR


@pytest.mark.root
def test_a_left_map_must_be_of_the_process_user_or_root(proc: Path) -> None:
    """Whose the process was is known from when it lived, else from its parent."""
    os.chown(left_file(proc), 12345, 12345)
    uids = "12345\t" * 4
    (proc / f"{PID}/status").write_text(f"Uid:\t{uids}\nNSpid:\t{PID}\n")
    lived = PerfMap(PID, proc, own_tmp=proc / "own")
    lived.meet(time.monotonic_ns())
    end_process(proc)
    assert lived.update()
    assert refused(proc) is Reason.DENIED
    for pid, uid in ((2, 12345), (3, 777)):
        (proc / str(pid)).mkdir()
        (proc / f"{pid}/status").write_text(f"Uid:\t{uid}\t{uid}\nNSpid:\t{pid}\n")
    of_parent = PerfMap(PID, proc, own_tmp=proc / "own")
    assert of_parent.meet(time.monotonic_ns(), parent=2)
    assert refused(proc, time.monotonic_ns(), parent=3) is Reason.DENIED
    os.chown(left_file(proc), 0, 0)
    assert PerfMap(PID, proc, own_tmp=proc / "own").meet(time.monotonic_ns(), parent=3)


def test_what_was_not_yet_read_is_the_reason(proc: Path) -> None:
    map_file(proc).write_text("1000 20 foo\n" * 300_000)
    perf_map = PerfMap(PID, proc)
    reasons = []
    for _ in range(2):
        perf_map.update()
        reasons.append(perf_map.reason)
    assert reasons == [Reason.TOO_LARGE, Reason.NO_FUNCTION]


@settings(max_examples=300)
@given(st.binary(max_size=500))
def test_hostile_content(data: bytes) -> None:
    starts, sizes, names = parse_perf_map(data)
    assert len(starts) == len(sizes) == len(names)
    parse_perf_map(b"1000 20 " + data + b"\nffffffffffffffff ffffffffffffffff x\n")


def test_a_process_that_truncates_its_map_meanwhile(proc: Path) -> None:
    map_file(proc).write_text("1000 20 foo\n")
    perf_map = PerfMap(PID, proc)
    perf_map.update()
    os.truncate(map_file(proc), 0)
    assert resolve(perf_map, 0x1000) == [None]


def test_code_compiled_by_node(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    script = """
        function hotOne(n) { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s }
        for (let i = 0; i < 300; i++) hotOne(1e5);
        console.log("ready");
        setInterval(() => 0, 1e6);
    """
    with subprocess.Popen(
        # V8 leaves a log where it runs.
        cwd=tmp_path,
        args=["node", "--perf-basic-prof", "-e", script],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "it ended"
        perf_map = PerfMap(process.pid)
        assert perf_map.update()
        process.kill()
    lines = Path(f"/tmp/perf-{process.pid}.map").read_text().splitlines()
    wanted = next(line for line in lines if "hotOne" in line)
    start, _, name = wanted.split(" ", 2)
    assert resolve(perf_map, int(start, 16) + 1) == [name]
    Path(f"/tmp/perf-{process.pid}.map").unlink()
