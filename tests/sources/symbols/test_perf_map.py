from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodescope.sources.symbols import PerfMap, Reason
from nodescope.sources.symbols.perf_map import MAX_FILE_BYTES, parse_perf_map

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
        process.stdout.readline()
        perf_map = PerfMap(process.pid)
        assert perf_map.update()
        process.kill()
    lines = Path(f"/tmp/perf-{process.pid}.map").read_text().splitlines()
    wanted = next(line for line in lines if "hotOne" in line)
    start, _, name = wanted.split(" ", 2)
    assert resolve(perf_map, int(start, 16) + 1) == [name]
    Path(f"/tmp/perf-{process.pid}.map").unlink()
