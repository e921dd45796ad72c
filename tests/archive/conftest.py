"""A recorder small enough to be obviously right, and clocks that tests own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from nodescope.archive.reader import Segment
from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.quantities import SECOND_NS

TICK_NS = 100_000

Frame = tuple[str, str, bool]  # module, name, kernel


@dataclass(frozen=True)
class Sample:
    """A sample with everything in it, as text: what must survive the archive."""

    cpu: int
    tick: int
    pid: int
    thread: int
    cgroup: str | None
    comm: str
    kernel: bool
    stack: tuple[Frame, ...]  # outermost first


@dataclass
class FakeClock:
    """Both clocks, moved by hand."""

    monotonic: int = 1_000 * SECOND_NS
    wall: int = 1_700_000_000 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.monotonic

    def wall_ns(self) -> int:
        return self.wall

    def advance(self, nanoseconds: int) -> None:
        self.monotonic += nanoseconds
        self.wall += nanoseconds


@dataclass
class Tape:
    """Numbers rows the plain way and hands them to a writer."""

    writer: ArchiveWriter
    frames: dict[Frame, int] = field(default_factory=dict)
    stacks: dict[tuple[int, ...], int] = field(default_factory=dict)  # frames → row of the leaf
    stack_rows: list[tuple[int, int]] = field(default_factory=list)  # depth and frame
    profile: dict[tuple[int, str, bool], int] = field(default_factory=dict)

    def append(self, samples: Iterable[Sample]) -> None:
        known = len(self.frames), len(self.stack_rows), len(self.profile)
        rows = [(sample, self._profile_row(sample)) for sample in samples]
        frames = list(self.frames)[known[0] :]
        profile = list(self.profile)[known[2] :]
        put = self.writer.append
        put("frames", _columns(("module", "name", "kernel"), frames))
        put("stacks", _columns(("depth", "frame"), self.stack_rows[known[1] :]))
        put(
            "profile",
            _columns(("stack", "comm", "kernel", "samples"), [(*row, 0) for row in profile]),
        )
        put(
            "samples",
            _columns(
                ("cpu", "tick", "pid", "thread", "cgroup", "profile"),
                [(s.cpu, s.tick, s.pid, s.thread, s.cgroup, row) for s, row in rows],
            ),
        )

    def _profile_row(self, sample: Sample) -> int:
        stack = tuple(self.frames.setdefault(frame, len(self.frames)) for frame in sample.stack)
        if stack not in self.stacks:
            self.stack_rows += enumerate(stack)
            self.stacks[stack] = len(self.stack_rows) - 1
        key = (self.stacks[stack], sample.comm, sample.kernel)
        return self.profile.setdefault(key, len(self.profile))

    def beat(self, clock: FakeClock, **changes: int) -> None:
        row = {
            "time_ns": clock.monotonic,
            "wall_ns": clock.wall,
            "cpu_ns": 0,
            "rss_bytes": 0,
            "written_bytes": 0,
            "samples": 0,
            "lost": 0,
            "late_ns": 0,
            "frequency_hz": 97,
        } | changes
        self.writer.append("heartbeats", {name: [value] for name, value in row.items()})

    def seal(self) -> Any:
        for table in (self.frames, self.stacks, self.profile):
            table.clear()
        self.stack_rows.clear()
        return self.writer.seal_segment()


def _columns(names: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def read_samples(segment: Segment) -> Counter[Sample]:
    """The samples of a segment with their stacks followed by hand, the slow way."""
    frames = [tuple(row.values()) for row in segment.read("frames").to_pylist()]
    stacks: list[tuple[Any, ...]] = []
    for row in segment.read("stacks").to_pylist():
        callers: tuple[Any, ...] = ()
        if row["depth"]:
            callers = next(s for s in reversed(stacks) if len(s) == row["depth"])
        stacks.append((*callers, frames[row["frame"]]))
    profile = segment.read("profile").to_pylist()
    found: Counter[Sample] = Counter()
    for row in segment.read("samples").to_pylist():
        of = profile[row["profile"]]
        found[
            Sample(
                row["cpu"],
                row["tick"],
                row["pid"],
                row["thread"],
                row["cgroup"],
                of["comm"],
                of["kernel"],
                stacks[of["stack"]],
            )
        ] += 1
    return found


def digests(root: Path) -> dict[str, str]:
    """The bytes of every sealed file."""
    files = (path for path in (root / "segments").glob("[!.]*/*"))
    return {str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest() for path in files}


def make_samples(first: int, count: int) -> list[Sample]:
    """Plain samples, each recognisable by its tick."""
    return [
        Sample(
            cpu=number % 2,
            tick=10_000_000 + number * 100,
            pid=100 + number % 7,
            thread=number % 3,
            cgroup="/system.slice" if number % 5 else None,
            comm=f"worker{number % 4}",
            kernel=number % 2 == 0,
            stack=tuple(
                ("[kernel]", f"function_{(number * step) % 11}", True)
                for step in range(1, 3 + number % 6)
            ),
        )
        for number in range(first, first + count)
    ]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@dataclass
class Studio:
    """Opens writers on one archive with one clock."""

    root: Path
    clock: FakeClock
    node: dict[str, object] = field(default_factory=lambda: {"host": "n1", "boot_id": "b1"})
    retention: Retention = field(default_factory=Retention)

    def open(self) -> Tape:
        writer = ArchiveWriter.open(
            self.root,
            node=self.node,
            clock=self.clock,
            tick_ns=TICK_NS,
            retention=self.retention,
        )
        return Tape(writer)


@pytest.fixture
def studio(tmp_path: Path, clock: FakeClock) -> Studio:
    return Studio(tmp_path / "archive", clock)


class Toolbox:
    """The functions above, for tests that cannot import this file."""

    Sample = Sample
    FakeClock = FakeClock
    Studio = Studio
    digests = staticmethod(digests)
    make_samples = staticmethod(make_samples)
    read_samples = staticmethod(read_samples)


@pytest.fixture(scope="session")
def tools() -> type[Toolbox]:
    return Toolbox
