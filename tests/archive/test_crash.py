"""Killed anywhere, at any byte: what was flushed is there, what was sealed is untouched."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import nodescope
from nodescope.archive.reader import Archive
from nodescope.archive.streams import stream_path
from nodescope.records import OPEN_TABLES

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Toolbox

FLUSHES = 4
PER_FLUSH = 12


@pytest.fixture
def torn(studio: Studio, tools: type[Toolbox]) -> tuple[Studio, list[dict[str, int]]]:
    """An open segment of some flushes, and how long each stream was after each."""
    tape = studio.open()
    lengths = []
    for flush in range(FLUSHES):
        tape.append(tools.make_samples(flush * PER_FLUSH, PER_FLUSH))
        tape.beat(studio.clock)
        tape.writer.flush()
        (segment,) = (studio.root / "open").iterdir()
        lengths.append({name: _size(stream_path(segment, name)) for name in OPEN_TABLES})
    tape.writer._streams = None  # as a killed process: nothing is sealed or closed in order
    tape.writer.close()
    return studio, lengths


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _open_directory(root: Path) -> Path:
    (directory,) = (root / "open").iterdir()
    return directory


def _recover(studio: Studio) -> None:
    writer = studio.open().writer
    assert writer.unrecoverable == []
    writer.close()
    assert list((studio.root / "open").iterdir()) == []


@pytest.mark.parametrize("table", ["frames", "stacks", "profile", "samples", "heartbeats"])
def test_a_stream_cut_at_any_byte_keeps_its_whole_batches(
    torn: tuple[Studio, list[dict[str, int]]], tools: type[Toolbox], table: str, tmp_path: Path
) -> None:
    studio, lengths = torn
    everything = Counter(tools.make_samples(0, FLUSHES * PER_FLUSH))
    ends = [length[table] for length in lengths]
    cuts = {0, 1, 3, 4, 7, 8, 100, *range(ends[0], ends[1], 61)}
    cuts |= {end + step for end in ends for step in (-9, -8, -1, 0, 1, 5, 8, 12)}
    for cut in sorted(cut for cut in cuts if 0 <= cut <= ends[-1]):
        copy = tools.Studio(tmp_path / f"cut{cut}", studio.clock)
        shutil.copytree(studio.root, copy.root)
        path = stream_path(_open_directory(copy.root), table)
        os.truncate(path, cut)
        (before,) = Archive.open(copy.root).segments()
        seen = tools.read_samples(before)
        _recover(copy)
        sealed = Archive.open(copy.root).segments()
        assert len(sealed) == 1
        whole = sum(end <= cut for end in ends)
        assert tools.read_samples(sealed[0]) == seen
        if table == "heartbeats":
            assert seen == everything
            assert len(sealed[0].read("heartbeats")) == whole
            continue
        # A dictionary row may come with an earlier flush than the sample that
        # refers to it, so more than the whole flushes may survive; never fewer.
        expected = Counter(tools.make_samples(0, whole * PER_FLUSH))
        assert seen >= expected
        assert seen <= everything
        if table == "samples":
            assert seen == expected


@pytest.mark.parametrize("garbage", [b"\0" * 4096, b"\xff" * 4096, bytes(range(256)) * 16])
@pytest.mark.parametrize("table", ["samples", "profile", "cores"])
def test_garbage_behind_the_last_batch_is_its_end(
    torn: tuple[Studio, list[dict[str, int]]], tools: type[Toolbox], table: str, garbage: bytes
) -> None:
    studio, _ = torn
    with stream_path(_open_directory(studio.root), table).open("ab") as stream:
        stream.write(garbage)
    _recover(studio)
    (segment,) = Archive.open(studio.root).segments()
    assert tools.read_samples(segment) == Counter(tools.make_samples(0, FLUSHES * PER_FLUSH))


def test_bytes_flipped_anywhere_never_raise(
    torn: tuple[Studio, list[dict[str, int]]], tools: type[Toolbox], tmp_path: Path
) -> None:
    studio, _ = torn
    dice = random.Random(7)
    for attempt in range(40):
        copy = tools.Studio(tmp_path / f"flip{attempt}", studio.clock)
        shutil.copytree(studio.root, copy.root)
        directory = _open_directory(copy.root)
        path = dice.choice(sorted(directory.glob("*.arrows")))
        content = bytearray(path.read_bytes())
        for _ in range(dice.choice([1, 4, 64])):
            content[dice.randrange(len(content))] = dice.randrange(256)
        path.write_bytes(content)
        Archive.open(copy.root).segments()[0].read("samples")
        _recover(copy)


def test_killed_between_rename_and_removal_is_sealed_once(
    torn: tuple[Studio, list[dict[str, int]]], tools: type[Toolbox], tmp_path: Path
) -> None:
    studio, _ = torn
    kept = tmp_path / "kept"
    shutil.copytree(_open_directory(studio.root), kept / _open_directory(studio.root).name)
    _recover(studio)
    before = tools.digests(studio.root)
    (name,) = kept.iterdir()
    shutil.copytree(name, studio.root / "open" / name.name)
    assert len(Archive.open(studio.root).segments()) == 1
    _recover(studio)
    assert tools.digests(studio.root) == before


def test_half_built_and_half_removed_segments_are_swept(studio: Studio) -> None:
    studio.open().writer.close()
    for folder in ("segments", "open"):
        half = studio.root / folder / ".00000009-20240101T000000Z"
        half.mkdir()
        (half / "samples.parquet").write_bytes(b"PAR1")
    assert Archive.open(studio.root).segments() == []
    studio.open().writer.close()
    assert [path.name for path in studio.root.glob("*/.*")] == []


def test_an_open_segment_without_description_is_reported_and_kept(
    torn: tuple[Studio, list[dict[str, int]]],
) -> None:
    studio, _ = torn
    directory = _open_directory(studio.root)
    (directory / "segment.json").unlink()
    writer = studio.open().writer
    assert [error.path for error in writer.unrecoverable] == [str(directory)]
    writer.close()
    assert directory.is_dir()
    assert [error.path for error in Archive.open(studio.root).listing().damaged] == [str(directory)]


# Flushes numbered samples for ever, sealing now and then; says each flush when done.
CHILD = """
import sys
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
writer = ArchiveWriter.open(sys.argv[1], node={}, clock=SystemClock(), tick_ns=1000)
number, rows = int(sys.argv[2]), 0
while True:
    if rows == 0:
        writer.append("frames", {"module": ["m"], "name": ["f"], "kernel": [True]})
        writer.append("stacks", {"depth": [0], "frame": [0]})
        writer.append("profile", {"stack": [0], "comm": ["c"], "kernel": [True], "samples": [0]})
    ticks = list(range(number, number + 50))
    zeros = [0] * 50
    writer.append("samples", {"cpu": zeros, "tick": ticks, "pid": zeros, "thread": zeros,
                              "cgroup": [None] * 50, "profile": zeros})
    writer.flush()
    number, rows = number + 50, rows + 50
    print(number, flush=True)
    if rows == 250:
        writer.seal_segment()
        rows = 0
"""


def _start(root: Path, number: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(nodescope.__file__).parents[1])}
    command = [sys.executable, "-c", CHILD, str(root), str(number)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def _ticks(root: Path) -> list[int]:
    listing = Archive.open(root).listing()
    assert listing.damaged == []
    return [
        tick
        for segment in listing.segments
        for tick in segment.read("samples", ["tick"])["tick"].to_pylist()
    ]


def test_kill_at_random_moments_costs_at_most_the_last_flush(
    tmp_path: Path, tools: type[Toolbox]
) -> None:
    root, dice = tmp_path / "archive", random.Random(11)
    number = 0
    sealed: dict[str, str] = {}
    for _ in range(8):
        with _start(root, number) as child:
            assert child.stdout is not None
            done = number
            for _ in range(dice.randrange(1, 40)):
                done = int(child.stdout.readline())
            child.send_signal(signal.SIGKILL)
        ticks = _ticks(root)
        assert ticks == list(range(len(ticks)))  # in order, none twice, none missing
        assert len(ticks) >= done
        assert len(ticks) % 50 == 0
        now = tools.digests(root)
        assert {name: now.get(name) for name in sealed} == sealed
        sealed, number = now, len(ticks)
    assert len(sealed) > 10


def test_a_reader_sees_flushes_while_another_process_writes(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    with _start(root, 0) as child:
        assert child.stdout is not None
        for _ in range(30):
            done = int(child.stdout.readline())
            ticks = _ticks(root)
            assert ticks == list(range(len(ticks)))
            assert len(ticks) >= done
        child.kill()
