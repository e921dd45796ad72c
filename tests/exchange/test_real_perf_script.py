"""Real captures through real `perf script`, in the shapes people save."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_samples

pytestmark = [pytest.mark.root, pytest.mark.debian("linux-perf")]

SPIN = "import hashlib\nwhile True: hashlib.sha256(bytes(5000)).digest()"
NAMED = re.compile(r"\s*[0-9a-f]+ (.*)\+0x[0-9a-f]+ \(")
HEADER = re.compile(  # the process of a sample is -1 when it was just ending
    r"^(.+?)\s+(-?\d+)/(-?\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}):", re.MULTILINE
)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of this machine with a busy `python3`."""
    path = tmp_path_factory.mktemp("perf") / "perf.data"
    busy_python = str(Path(sys.executable).with_name("python3"))  # its name is its comm
    with subprocess.Popen([busy_python, "-c", SPIN]) as busy:
        try:
            command = [
                "perf",
                "record",
                "-a",
                "-g",
                "-F",
                "199",
                "-e",
                "cpu-clock",
                "-o",
                str(path),
            ]
            subprocess.run([*command, "--", "sleep", "2"], check=True, capture_output=True)
        finally:
            busy.kill()
    return path


def script(capture: Path, *options: str) -> bytes:
    command = ["perf", "script", "-i", str(capture), *options]
    return subprocess.run(command, check=True, capture_output=True).stdout


ALL = "comm,pid,tid,cpu,time,period,event,ip,sym,symoff,dso"


def test_counts_equal_perfs_own(capture: Path, tmp_path: Path) -> None:
    text = script(capture, "-F", ALL, "--ns")
    path = tmp_path / "perf.script"
    path.write_bytes(text)
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_samples(archive)
    headers = HEADER.findall(text.decode())
    assert len(headers) > 300
    assert report.samples == len(headers)
    assert report.malformed == 0
    by_place = Counter(
        (comm, int(pid), int(tid), int(cpu)) for comm, pid, tid, cpu, _, _ in headers
    )
    assert Counter((row.comm, row.pid, row.tid, row.cpu) for row in rows) == by_place
    assert any(comm.startswith("python3") for comm, *_ in by_place)
    times = sorted(int(s) * 10**9 + int(ns) for *_, s, ns in headers)
    offset = rows[0].wall_ns - times[0] // 1000 * 1000
    assert [row.wall_ns - offset for row in rows] == [one // 1000 * 1000 for one in times]


def test_leaf_and_root_of_every_sample_are_perfs(capture: Path, tmp_path: Path) -> None:
    text = script(capture, "-F", ALL, "--ns")
    path = tmp_path / "perf.script"
    path.write_bytes(text)
    _, archive = import_file(path, tmp_path / "archive")
    expected: Counter[tuple[str, str]] = Counter()
    for sample in text.decode().split("\n\n"):
        lines = sample.strip("\n").split("\n")[1:]
        if lines:
            ends = [NAMED.match(line) for line in (lines[0], lines[-1])]
            names = [end[1] if end else "[unknown]" for end in ends]
            if "[unknown]" not in names:
                expected[names[0], names[1]] += 1
    # How many chains of programs without frame pointers end in a name is left to chance.
    assert expected
    found = Counter((row.stack[-1], row.stack[0]) for row in read_samples(archive))
    assert {pair: found[pair] for pair in expected} == dict(expected)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--header"],
        ["-F", "+pid"],
        ["-F", "-cpu"],
        ["-F", "-period"],
        ["-F", "-symoff"],
        ["-F", "+misc"],
        ["-F", "comm,tid,cpu,time,event,ip,sym,dso", "-G"],
        ["-F", "comm,pid,tid,time,ip,sym"],
    ],
    ids=" ".join,
)
def test_every_shape_gives_every_sample(capture: Path, options: list[str], tmp_path: Path) -> None:
    samples = len(HEADER.findall(script(capture, "-F", ALL, "--ns").decode()))
    path = tmp_path / "perf.script.gz"
    path.write_bytes(gzip.compress(script(capture, *options), 1))
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_samples(archive)
    assert report.samples == len(rows) == samples
    assert report.stopped_at is None
    assert "perf" not in {row.stack[-1] for row in rows}
    assert any(
        "sha256" in name.lower() or name != "[unknown]" for row in rows for name in row.stack
    )
    if options == ["--header"]:
        # `captured on` is when perf.data was finished.
        assert abs(rows[-1].wall_ns - capture.stat().st_mtime_ns) < 2_000_000_000


def test_a_capture_that_is_traced_has_its_times_now(capture: Path, tmp_path: Path) -> None:
    path = tmp_path / "perf.script"
    path.write_bytes(script(capture))
    _, archive = import_file(path, tmp_path / "archive")
    assert abs(read_samples(archive)[-1].wall_ns - time.time_ns()) < 60_000_000_000
