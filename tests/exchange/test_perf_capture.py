"""Real captures of this machine, held against what `perf script` says of them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.exchange.rows import Row, count, read_rows
from tests.symbols.test_perf_agreement import same

from nodescope.errors import MalformedSource
from nodescope.exchange.import_files import import_files

pytestmark = [pytest.mark.root, pytest.mark.live, pytest.mark.debian("linux-perf")]

SECONDS = "0.8"
SYSTEM = ["-F", "499", "-g", "-a"]
PYTHON = "import json\nwhile True: json.loads(json.dumps({str(i): [i] * 9 for i in range(999)}))"
FORKS = "while :; do ls -l /usr/bin >/dev/null; cat /proc/self/status >/dev/null; done"
_HEAD = re.compile(
    r"^(?P<comm>.+?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?:\[(?P<cpu>\d+)\]\s+)?"
    r"(?P<s>\d+)\.(?P<ns>\d{9}):\s+(?P<event>\S+?):(?P<only>\s+[0-9a-f]+ .*)?\s*$"
)
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*) \(((?:[^()]|\(deleted\))*)\)$")


@dataclass(frozen=True)
class Said:
    """A sample as perf prints it."""

    comm: str
    pid: int
    tid: int
    cpu: int
    time_ns: int
    event: str
    frames: tuple[str, ...]  # innermost first


def perf_script(path: Path, cpu: str = "cpu,") -> list[Said]:
    fields = f"comm,pid,tid,{cpu}time,event,ip,sym,dso"
    text = subprocess.run(
        ["perf", "script", "-i", str(path), "-F", fields, "--ns", "--no-inline", "-f"],
        check=True, capture_output=True,
    ).stdout.decode("utf-8", "replace")  # fmt: skip
    if not text:
        raise AssertionError("perf script says nothing")
    return list(parse_script(text))


def parse_script(text: str) -> Iterator[Said]:
    head: re.Match[str] | None = None
    frames: list[str] = []
    for line in [*text.splitlines(), ""]:
        found = _HEAD.match(line)  # first: to whom a line belongs that `dd` begins, a number in hex
        frame = _FRAME.match(line if found is None else found["only"] or "")
        if found is not None:
            head, frames = found, []
        if frame:
            frames.append(frame[2])
        assert head is not None or not line.strip(), line
        if head is not None and (head["only"] or not line.strip()):
            yield Said(
                head["comm"].strip(), int(head["pid"]), int(head["tid"]), int(head["cpu"] or -1),
                int(head["s"]) * 10**9 + int(head["ns"]), head["event"], tuple(frames),
            )  # fmt: skip
            head = None


@pytest.fixture(scope="module")
def load() -> Iterator[int]:
    """Programs that run, fork and make system calls; the pid of the first."""
    commands = [[sys.executable, "-c", PYTHON], ["sh", "-c", FORKS],
                ["dd", "if=/dev/zero", "of=/dev/null", "bs=4k"]]  # fmt: skip
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                         start_new_session=True)
        for command in commands
    ]  # fmt: skip
    yield running[0].pid
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def perf_record(path: Path, *options: str) -> None:
    subprocess.run(["perf", "record", "-q", "-o", str(path), *options, "--", "sleep", SECONDS],
                   check=True, capture_output=True)  # fmt: skip


def bring_in(path: Path, archive: Path) -> list[Row]:
    (report,) = import_files([path], archive).reports
    print(report)
    assert report.stopped_at is None
    assert report.malformed == 0
    rows = read_rows(archive)
    assert report.samples == len(rows) > 0
    return rows


def count_said(said: list[Said]) -> Counter[tuple[str, int, int, int]]:
    return Counter((one.comm, one.pid, one.cpu, one.time_ns // 10**9) for one in said)


def assert_same_counts(rows: list[Row], said: list[Said]) -> None:
    ours, theirs = count(rows), count_said(said)
    assert not ours - theirs
    assert not theirs - ours


def assert_same_ends(rows: list[Row], said: list[Said]) -> None:
    """Innermost and outermost functions of every sample, where perf names them."""
    by_key = {(row.time_ns // 1000, row.cpu, row.tid): row for row in rows}
    named = 0
    wrong: Counter[tuple[str, str, str]] = Counter()
    for one in said:
        row = by_key[one.time_ns // 1000, one.cpu, one.tid]
        if not one.frames:
            continue
        for end, theirs, ours in (
            ("leaf", one.frames[0], row.stack[-1]),
            ("root", one.frames[-1], row.stack[0]),
        ):
            if theirs != "[unknown]":
                named += 1
                if not same(ours, theirs):
                    wrong[end, ours, theirs] += 1
    print(f"{named} ends named by perf, {sum(wrong.values())} differ: {wrong.most_common(20)}")
    assert named
    # A binary may be replaced, or a map grow, between our look at it and perf's.
    assert wrong.total() <= named * 0.005


@pytest.fixture(scope="module")
def system_wide(load: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "perf.data"
    perf_record(path, *SYSTEM)
    return path


def test_a_system_wide_capture_says_what_perf_says(system_wide: Path, tmp_path: Path) -> None:
    rows = bring_in(system_wide, tmp_path / "archive")
    said = perf_script(system_wide)
    assert_same_counts(rows, said)
    assert_same_ends(rows, said)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["-z", *SYSTEM], id="compressed"),
        pytest.param(["-F", "997", "--call-graph", "fp", "-a", "-k", "mono"], id="clock"),
        pytest.param(["-F", "499", "-a"], id="without chains"),
        pytest.param(["-B", "-N", "--buildid-mmap", *SYSTEM], id="build-ids in mappings"),
        pytest.param(["--all-cgroups", *SYSTEM], id="cgroups"),
    ],
)
def test_other_captures_say_what_perf_says(load: int, tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "perf.data"
    perf_record(path, *options)
    rows = bring_in(path, tmp_path / "archive")
    said = perf_script(path)
    assert_same_counts(rows, said)
    assert_same_ends(rows, said)


def test_pipe_mode_says_what_perf_says(load: int, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    with open(path, "wb") as file:
        subprocess.run(["perf", "record", "-q", "-o", "-", *SYSTEM, "--", "sleep", SECONDS],
                       check=True, stdout=file, stderr=subprocess.DEVNULL)  # fmt: skip
    rows = bring_in(path, tmp_path / "archive")
    said = perf_script(path)
    assert_same_counts(rows, said)
    assert_same_ends(rows, said)


def test_of_several_events_the_one_of_cpu_time_is_taken(load: int, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    perf_record(path, "-e", "page-faults", "-e", "cpu-clock", "-F", "499", "-g", "-a")
    rows = bring_in(path, tmp_path / "archive")
    said = [one for one in perf_script(path) if one.event.startswith("cpu-clock")]
    assert_same_counts(rows, said)


def test_a_single_process_without_cores(load: int, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    perf_record(path, "-F", "499", "-g", "-T", "--per-thread", "-p", str(load))
    rows = bring_in(path, tmp_path / "archive")
    said = perf_script(path, cpu="")
    assert {row.cpu for row in rows} == {-1}
    ours = Counter((row.comm, row.pid, row.time_ns // 10**9) for row in rows)
    assert ours == Counter((one.comm, one.pid, one.time_ns // 10**9) for one in said)


def test_samples_without_a_time_are_refused_with_what_to_do(load: int, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    perf_record(path, "-F", "499", "-g", "--per-thread", "-p", str(load))
    with pytest.raises(MalformedSource, match="do not carry their time") as refused:
        import_files([path], tmp_path / "archive")
    assert "perf record -T" in str(refused.value.hint)


def test_clock_readings_place_a_capture_on_the_wall(load: int, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    began_ns = time.time_ns()
    perf_record(path, "-k", "CLOCK_MONOTONIC", *SYSTEM)
    ended_ns = time.time_ns()
    (report,) = import_files([path], tmp_path / "archive").reports
    assert report.clock_source == "clock readings in the file"
    assert report.wall_to_ns is not None
    assert began_ns <= report.wall_to_ns <= ended_ns


def test_another_kernels_functions_keep_their_addresses(
    system_wide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = system_wide.read_bytes()
    own = subprocess.run(["perf", "buildid-list", "-k"], check=True, capture_output=True)
    build_id = bytes.fromhex(own.stdout.decode().split()[0])
    if build_id not in content:
        pytest.skip("perf did not note the kernel's build-id")
    path = tmp_path / "perf.data"
    path.write_bytes(content.replace(build_id, bytes(reversed(build_id))))
    (report,) = import_files([path], tmp_path / "archive").reports
    assert any(note.startswith("kernel functions have no names") for note in report.notes)
    assert report.unresolved_kernel == report.kernel_frames > 0
    assert shutil.which("perf")
