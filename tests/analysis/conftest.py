"""A small archive made by hand, and the slow truth about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nodescope.archive.interning import Interner
from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.numbering import Sequences
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records.tables import FOLDED

START = 1_700_000_000 * SECOND_NS


@dataclass
class HandClock:
    now: int = 1_000 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.now

    def wall_ns(self) -> int:
        return START + self.now - 1_000 * SECOND_NS


@dataclass(frozen=True)
class Sample:
    second: float
    cpu: int
    pid: int
    comm: str
    stack: str  # outermost first, `;` between; kernel functions end in _[k]
    cgroup: str = "/"

    @property
    def frames(self) -> list[tuple[str, str, bool]]:
        return [
            ("[kernel]", name.removesuffix("_[k]"), True)
            if name.endswith("_[k]")
            else (FOLDED if name == FOLDED else "/bin/app", name, False)
            for name in self.stack.split(";")
        ]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for _, name, _ in self.frames)


def write_archive(
    path: Path,
    segments: Sequence[Sequence[Sample]],
    beside: Mapping[str, Mapping[str, Sequence[object]]] | None = None,
) -> Archive:
    """An archive with these segments, each 120 s after the one before.

    Rows of other tables, `beside` the samples, are the same in each.
    """
    clock = HandClock()
    with ArchiveWriter.open(path, node={"name": "hand", "boot_id": "b"}, clock=clock,
                            tick_ns=1000) as writer:  # fmt: skip
        for number, samples in enumerate(segments):
            clock.now = (1_000 + 120 * number) * SECOND_NS
            _append(writer, samples, clock.now)
            for table, columns in (beside or {}).items():
                writer.append(table, columns)
            clock.now += 120 * SECOND_NS
            writer.seal_segment()
    return Archive.open(path)


def _append(writer: ArchiveWriter, samples: Sequence[Sample], start: int) -> None:
    frames: list[tuple[str, str, bool]] = [("[unknown]", "[unknown]", False)]
    paths = Sequences()
    comms = sorted({sample.comm for sample in samples})
    for sample in samples:
        numbers = []
        for frame in sample.frames:
            if frame not in frames:
                frames.append(frame)
            numbers.append(frames.index(frame))
        paths.append(tuple(numbers))
    interner = Interner(frames, paths, comms)
    rows = interner.intern(
        np.array([comms.index(sample.comm) for sample in samples], np.int64),
        np.array([sample.frames[-1][2] for sample in samples], np.int64),
        np.arange(1, len(samples) + 1),
        np.zeros(len(samples), np.int64),
    )
    for table, columns in interner.take_new_rows().items():
        writer.append(table, columns)
    writer.append(
        "samples",
        {
            "cpu": [sample.cpu for sample in samples],
            "tick": [int(start // 1000 + sample.second * 1_000_000) for sample in samples],
            "pid": [sample.pid for sample in samples],
            "thread": [0] * len(samples),
            "cgroup": [sample.cgroup for sample in samples],
            "profile": rows,
        },
    )
    for second in (0, 119):
        at = start + second * SECOND_NS
        writer.append(
            "heartbeats",
            {
                "time_ns": [at], "wall_ns": [START + at - 1_000 * SECOND_NS], "cpu_ns": [0],
                "rss_bytes": [0], "written_bytes": [0], "samples": [0], "lost": [0],
                "late_ns": [0], "frequency_hz": [97],
            },
        )  # fmt: skip


SAMPLES = [
    Sample(0.25, 0, 10, "app", "main;work"),
    Sample(0.75, 1, 10, "app", "main;work;read_[k]"),
    Sample(1.10, 0, 10, "app", "main;work;work"),
    Sample(1.20, 0, 11, "python3", "main;loop", "/kubepods/pod1"),
    Sample(5.50, 1, 12, "kworker/0:1", "kthread_[k];worker_[k]"),
    Sample(90.0, 39, 13, "kubelet", "main;read_[k];walk_[k]", "/system.slice/kubelet.service"),
]
LATER = [
    Sample(3.0, 0, 10, "app", "main;other"),
    Sample(4.0, 39, 13, "kubelet", "main;read_[k];walk_[k]", "/system.slice/kubelet.service"),
]


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return write_archive(tmp_path / "archive", [SAMPLES, LATER])


@pytest.fixture
def parts(archive: Archive) -> list[SampleColumns]:
    return [SampleColumns(segment) for segment in archive.segments()]


def count(samples: Sequence[Sample], key: str) -> Counter[object]:
    return Counter(getattr(sample, key) for sample in samples)
