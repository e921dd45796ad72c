"""A recording with folded stacks beside the same one with whole stacks."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.analysis.conftest import HandClock
from tests.perf import perf_records as make

from nodescope.analysis.filter import Filter
from nodescope.analysis.quality import assess
from nodescope.archive.reader import Archive
from nodescope.archive.status import summarise
from nodescope.archive.writer import ArchiveWriter
from nodescope.perf.decode import split
from nodescope.quantities import SECOND_NS
from nodescope.recorder.samples.novelty import SAVED_S, Novelty
from nodescope.recorder.samples.profiler import Profiler
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.tables import FOLDED

KERNEL, CODE, PAGE = 0xFFFFFFFF81000000, 0x400000, 0x1000
TICK_NS, CORES, SECONDS = 100_000, 3, 8
FIRST_NS = 2_000 * SECOND_NS
Facts = tuple[int, int, int, str, bool, str, str]


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A node with two processes whose binary is none, so that a function is a place in it."""
    lines = [f"{KERNEL + 0x100 * at:x} T k{at}\n" for at in range(4)]
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kallsyms").write_text("".join(lines) + f"{KERNEL + 0x400:x} T _etext\n")
    uid = os.geteuid()
    for pid in (8, 9):
        (tmp_path / f"proc/{pid}/root/bin").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/root/bin/odd").write_text("no ELF")
        (tmp_path / f"proc/{pid}/status").write_text(f"Uid:\t{uid}\t{uid}\nNSpid:\t{pid}\n")
    return tmp_path / "proc"


def second_of(number: int, chance: random.Random, functions: int) -> list[bytes]:
    """What each ring held of a second: samples of both processes, some in the kernel."""
    rings = []
    for _ in range(CORES):
        records = b""
        for at in range(20):
            pid = chance.choice((8, 9))
            chain = [CODE + chance.randrange(functions) for _ in range(chance.randint(1, 40))]
            kernel = [KERNEL + 0x100 * at + 4 for at in range(chance.randint(0, 3))]
            time_ns = FIRST_NS + number * SECOND_NS + at * 40_000_000 + 7
            records += make.sample(pid, pid, time_ns, user=chain, kernel=kernel)
        rings.append(records)
    return rings


def births(proc: Path) -> bytes:
    records = b""
    for pid in (8, 9):
        inode = (proc / f"{pid}/root/bin/odd").stat()
        device = os.major(inode.st_dev), os.minor(inode.st_dev)
        records += make.fork(pid, 1, FIRST_NS + 1)
        records += make.comm(pid, pid, FIRST_NS + 2, f"p{pid}", executed=True)
        records += make.mmap2(
            pid, FIRST_NS + 3, CODE, 1 << 20, "/bin/odd", inode=inode.st_ino, device=device
        )
    return records


@dataclass
class Made:
    """An archive, and how many of its samples the profiler says it folded."""

    archive: Archive
    folded: int
    said: int


def record(proc: Path, path: Path, novelty: Novelty | None, functions: int = 1 << 16) -> Made:
    profiler = Profiler(proc, TICK_NS, novelty)
    chance, clock = random.Random(12), HandClock(FIRST_NS)
    with ArchiveWriter.open(path, node={}, clock=clock, tick_ns=TICK_NS) as writer:
        profiler.process([split(0, births(proc))], cgroup=False)
        for number in range(SECONDS):
            rings = second_of(number, chance, functions)
            chunks = [split(cpu, data) for cpu, data in enumerate(rings)]
            _, rows = profiler.process(chunks, cgroup=False)
            for table, columns in rows.items():
                writer.append(table, columns)
            beat = {"time_ns": FIRST_NS + (number + 1) * SECOND_NS, "folded": profiler.folded}
            beat |= {"wall_ns": beat["time_ns"], "rss_bytes": 1 << 20}
            writer.append("heartbeats", {name: [value] for name, value in beat.items()})
            writer.flush()
    profiler.close()
    archive = Archive.open(path)
    return Made(archive, profiler.folded, summarise(archive).folded or 0)


def read_facts(archive: Archive) -> Iterator[tuple[Facts, bool]]:
    """Second, core, process, name, mode, root and leaf of each sample; and whether folded."""
    (segment,) = archive.segments()
    stacks = segment.read("stacks").to_pydict()
    names = segment.read("frames").column("name").to_pylist()
    paths: list[tuple[str, ...]] = []
    callers: list[str] = []
    for depth, frame in zip(stacks["depth"], stacks["frame"], strict=True):
        callers = [*callers[:depth], names[frame]]
        paths.append(tuple(callers))
    profile = segment.read("profile").to_pydict()
    for row in segment.read("samples").to_pylist():
        at = row["profile"]
        path = paths[profile["stack"][at]]
        facts = (row["tick"], row["cpu"], row["pid"], profile["comm"][at], profile["kernel"][at],
                 path[0], path[-1])  # fmt: skip
        yield facts, FOLDED in path


@pytest.fixture
def whole(proc: Path, tmp_path: Path) -> Made:
    return record(proc, tmp_path / "whole", None)


@pytest.fixture
def folded(proc: Path, tmp_path: Path) -> Made:
    return record(proc, tmp_path / "folded", Novelty(60.0))


def test_second_core_process_mode_root_and_leaf_of_every_sample_are_the_same(
    whole: Made, folded: Made
) -> None:
    facts = sorted(each for each, _ in read_facts(whole.archive))
    assert len(facts) == CORES * SECONDS * 20
    assert facts == sorted(each for each, _ in read_facts(folded.archive))
    assert folded.folded > len(facts) // 4


def test_folded_samples_are_counted_alike_everywhere(folded: Made) -> None:
    """By the recorder, in `status`, per second and core, in `quality`, and by their stacks."""
    found = list(read_facts(folded.archive))
    by_second: dict[tuple[int, int], int] = {}
    for (tick, cpu, *_), is_folded in found:
        key = (cpu, tick * TICK_NS // SECOND_NS)
        by_second[key] = by_second.get(key, 0) + is_folded
    (segment,) = folded.archive.segments()
    rows = segment.read("seconds").to_pylist()
    assert {(row["cpu"], row["second"]): row["folded"] for row in rows} == by_second
    assert sum(by_second.values()) == folded.folded == folded.said
    recording = Recording.open(folded.archive.root)
    window = Window(recording.extent.from_ns, recording.extent.to_ns + 1)
    quality = assess(recording, window, Filter(), recording.samples(window))
    assert quality.folded_stacks == folded.folded
    assert quality.folded_share == folded.folded / len(found)


def test_nothing_is_folded_that_is_tame(proc: Path, tmp_path: Path) -> None:
    samples = CORES * SECONDS * 20
    novelty = Novelty(samples * 45 / SAVED_S)
    made = record(proc, tmp_path / "tame", novelty)
    assert made.folded == 0
    assert not any(is_folded for _, is_folded in read_facts(made.archive))
    (segment,) = made.archive.segments()
    assert set(segment.read("seconds").column("folded").to_pylist()) == {0}
