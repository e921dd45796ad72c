from __future__ import annotations

import gzip
import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_rows, read_samples

from nodescope.errors import MalformedSource
from nodescope.exchange.profiles.pprof import (
    count_stacks,
    looks_like_pprof,
    parse_profile,
)
from nodescope.ingest.parsed import Notes, ParsedNames


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, body: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(body)) + body


START_NS = 1_700_000_000_000_000_000
STRINGS = [
    "", "samples", "count", "cpu", "nanoseconds", "main.main", "runtime.mallocgc",
    "/usr/bin/kubelet", "inlined", "comm", "kubelet", "pid", "[kernel.kallsyms]", "do_idle",
    "alloc_space", "bytes",
]  # fmt: skip


def profile(
    types: tuple[tuple[int, int], ...] = ((1, 2), (3, 4)),
    *,
    packed: bool = True,
    period: int = 10_000_000,
) -> bytes:
    def sample(locations: list[int], values: list[int], labels: bytes = b"") -> bytes:
        if packed:
            body = message(1, b"".join(map(varint, locations)))
            body += message(2, b"".join(map(varint, values)))
        else:
            body = b"".join(number(1, one) for one in locations)
            body += b"".join(number(2, one) for one in values)
        return message(2, body + labels)

    labels = message(3, number(1, 9) + number(2, 10)) + message(3, number(1, 11) + number(3, 77))
    data = b"".join(message(1, number(1, kind) + number(2, unit)) for kind, unit in types)
    data += sample([2, 1], [30, 300_000_000], labels)
    data += sample([3, 1], [10, 100_000_000])
    data += message(3, number(1, 1) + number(5, 7)) + message(3, number(1, 2) + number(5, 12))
    data += message(4, number(1, 1) + number(2, 1) + number(3, 0x1000) + message(4, number(1, 1)))
    inlined = message(4, number(1, 3)) + message(4, number(1, 2))
    data += message(4, number(1, 2) + number(2, 1) + number(3, 0x2000) + inlined)
    kernel = number(1, 3) + number(2, 2) + number(3, 0xFFFFFFFF81000000)
    data += message(4, kernel + message(4, number(1, 4)))
    for identifier, name in ((1, 5), (2, 6), (3, 8), (4, 13)):
        data += message(5, number(1, identifier) + number(2, name))
    data += b"".join(message(6, text.encode()) for text in STRINGS)
    data += number(9, START_NS) + number(10, 2_000_000_000)
    return data + message(11, number(1, 3) + number(2, 4)) + number(12, period)


@pytest.mark.parametrize("packed", [True, False])
def test_a_profile_is_spread_over_its_duration(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "cpu.pb.gz"
    path.write_bytes(gzip.compress(profile(packed=packed)))
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_samples(archive)
    assert report.format == "pprof"
    assert Counter(row.stack for row in rows) == {
        ("main.main", "runtime.mallocgc", "inlined"): 30,
        ("main.main", "do_idle"): 10,
    }
    assert {(row.comm, row.pid, row.kernel) for row in rows} == {
        ("kubelet", 77, False), ("[unknown]", -1, True),
    }  # fmt: skip
    assert all(START_NS <= row.wall_ns < START_NS + 2_000_000_000 for row in rows)
    first_second = Counter(row.pid for row in rows if row.wall_ns < START_NS + 1_000_000_000)
    assert first_second == {77: 15, -1: 5}
    (said,) = read_rows(archive, "events")
    assert "spread evenly" in said["message"]


def test_cpu_time_alone_is_divided_by_the_period(tmp_path: Path) -> None:
    data = profile(((14, 15), (3, 4)))
    notes, names = Notes(), ParsedNames()
    counted = count_stacks(parse_profile(data, notes), names, notes, tmp_path)
    assert [each.samples for each in counted] == [30, 10]
    assert "divided" in notes.remarks[0]


def test_a_profile_of_allocations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "heap.pb.gz"
    path.write_bytes(gzip.compress(profile(((14, 15), (14, 15)))))
    with pytest.raises(MalformedSource, match="alloc_space/bytes"):
        import_file(path, tmp_path / "archive")


def test_a_profile_that_is_cut_says_where() -> None:
    data = profile()
    whole = Notes()
    parse_profile(data, whole)
    assert whole.stopped is None
    for cut in range(1, len(data)):
        notes = Notes()
        parse_profile(data[:cut], notes)
        assert notes.stopped is None or notes.offset <= cut


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pb.gz"
    path.write_bytes(gzip.compress(profile() + message(13, b"\0" * (200 << 20)), 1))
    with pytest.raises(MalformedSource, match="more than 128 MiB"):
        import_file(path, tmp_path / "archive")


PROGRAM = """\
package main

import (
	"crypto/sha256"
	"os"
	"runtime/pprof"
	"time"
)

//go:noinline
func spinForTheTest(until time.Time) {
	data := make([]byte, 4096)
	for time.Now().Before(until) {
		sha256.Sum256(data)
	}
}

func main() {
	file, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(file)
	spinForTheTest(time.Now().Add(time.Second))
	pprof.StopCPUProfile()
	file.Close()
}
"""


@pytest.mark.debian("golang-go")
def test_a_real_profile_of_go(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(PROGRAM)
    before_ns = time.time_ns()
    environment = os.environ | {"GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off"}
    program = str(tmp_path / "main")
    subprocess.run(
        ["go", "build", "-o", program, "main.go"], cwd=tmp_path, env=environment, check=True
    )
    path = tmp_path / "cpu.pprof"
    subprocess.run([program, str(path)], check=True)
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_samples(archive)
    shown = subprocess.run(
        ["go", "tool", "pprof", "-raw", "-sample_index=samples", str(path)],
        env=environment, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    body = shown[shown.index("Samples:") : shown.index("Locations")]
    counts = re.findall(r"^ +(\d+) +\d+: ", body, re.MULTILINE)
    assert len(rows) == report.samples == sum(map(int, counts)) > 10
    spinning = [row for row in rows if "main.spinForTheTest" in row.stack]
    assert len(spinning) > len(rows) / 2
    assert {row.stack[:2] for row in spinning} == {("runtime.main", "main.main")}
    assert before_ns < rows[0].wall_ns <= rows[-1].wall_ns < time.time_ns()


def test_what_it_is_recognised_by() -> None:
    assert looks_like_pprof(profile())
    assert looks_like_pprof(profile()[:60])
    assert not looks_like_pprof(b"a;b;c 12\n" * 40)
    assert not looks_like_pprof(b"[    0.000000] Linux version\n" * 40)
    assert not looks_like_pprof(b"")
