"""What was not sampled, and when: with rings made by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.perf import perf_records as make

from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.errors import SourceDenied, SourceError
from nodescope.perf.decode import LOST, Chunk, split
from nodescope.perf.event import Sampler
from nodescope.quantities import SECOND_NS
from nodescope.recorder.event_log import EventLog
from nodescope.recorder.options import RecorderOptions
from nodescope.recorder.samples import intake
from nodescope.recorder.samples.intake import Intake
from nodescope.recorder.samples.rings import Followed
from nodescope.recorder.watches.pegged_cores import CoreWatch


def loss(records: int) -> bytes:
    """The kernel's record of a loss."""
    return struct.pack("<IHHQQQQ", LOST, 0, 40, 0, records, 0, 0)


@dataclass
class HandSampling:
    """Stands for the rings: hands out what a test put there."""

    counts_lost: bool = True
    sampler: Sampler = field(default_factory=Sampler)
    cpus: list[int] = field(default_factory=lambda: [0, 1])
    failed: dict[int, SourceError] = field(default_factory=dict)
    held: list[Chunk] = field(default_factory=list)
    untold: dict[int, int] = field(default_factory=dict)
    added: tuple[int, ...] = ()

    def follow(self, lives: object) -> tuple[Followed, list[Chunk]]:
        return Followed(added=self.added), []

    def drain(self) -> list[Chunk]:
        taken, self.held = self.held, []
        return taken

    def take_lost(self, *, ask_all: bool = False) -> dict[int, int]:
        taken, self.untold = self.untold, {}
        return taken


@dataclass
class Bench:
    """An intake with its log, and a writer to append to."""

    intake: Intake
    sampling: HandSampling
    log: EventLog
    writer: ArchiveWriter
    said: list[str]

    def drain(self, second: float) -> None:
        self.intake.drain(int(second * SECOND_NS))

    def flush(self, second: float) -> None:
        now = int(second * SECOND_NS)
        self.intake.append(now, self.writer, CoreWatch(Path("/proc")))
        self.intake.tell_unsampled(now)

    def gaps(self) -> list[tuple[Any, ...]]:
        """(from, to) in seconds, core, lost, reason of what was said since the last call."""
        rows: dict[str, list[Any]] = self.log.take_new_rows().get("gaps", {})
        if not rows:
            return []
        times = [[value / SECOND_NS for value in rows[name]] for name in ("from_ns", "to_ns")]
        return list(zip(*times, rows["cpu"], rows["lost"], rows["reason"], strict=True))


@contextmanager
def make_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampling: HandSampling | SourceError
) -> Iterator[Bench]:
    def open_sampling(*_: object) -> HandSampling:
        if isinstance(sampling, SourceError):
            raise sampling
        return sampling

    monkeypatch.setattr(intake, "Sampling", open_sampling)
    said: list[str] = []
    log = EventLog(said.append)
    options = RecorderOptions(tmp_path / "archive")
    with ArchiveWriter.open(
        tmp_path / "archive", node={}, clock=SystemClock(), tick_ns=1000
    ) as writer:
        taken = Intake(options, log, 0)
        taken.start(0)
        hand = sampling if isinstance(sampling, HandSampling) else HandSampling()
        yield Bench(taken, hand, log, writer, said)


def test_a_loss_lies_between_the_draining_that_met_it_and_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_bench(tmp_path, monkeypatch, HandSampling()) as bench:
        for second in (2, 4):
            bench.drain(second)
        bench.flush(5)
        # Not run from 5 to 9: full since some time, found so at 9; the record of it comes later.
        bench.sampling.untold = {1: 30}
        bench.drain(9)
        bench.sampling.held = [split(1, loss(30))]
        bench.drain(11)
        bench.flush(11)
        assert bench.gaps() == [(4.0, 9.0, 1, 30, "the ring was full")]
        assert bench.intake.lost == 30


def test_where_the_kernel_does_not_count_the_gap_reaches_one_draining_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_bench(tmp_path, monkeypatch, HandSampling(counts_lost=False)) as bench:
        for second in (2, 4):
            bench.drain(second)
        bench.flush(5)
        bench.drain(9)
        bench.flush(9)
        bench.sampling.held = [split(1, loss(30))]
        bench.drain(9.1)
        bench.flush(10)
        assert bench.gaps() == [(4.0, 10.0, 1, 30, "the ring was full")]
        assert bench.intake.lost == 30


def test_what_is_lost_at_the_very_end_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_bench(tmp_path, monkeypatch, HandSampling()) as bench:
        bench.drain(2)
        bench.sampling.untold = {0: 4}
        bench.intake.drain(3 * SECOND_NS, last=True)
        assert bench.intake.lost == 4
        assert bench.gaps() == [(2.0, 3.0, 0, 4, "the ring was full")]


def test_without_samples_the_gap_lasts_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = SourceDenied("perf_event_open", "not permitted")
    with make_bench(tmp_path, monkeypatch, denied) as bench:
        bench.flush(5)
        bench.flush(10)
        assert bench.gaps() == [(0.0, 10.0, None, None, "not permitted")]
        bench.flush(12)
        assert bench.gaps() == [(10.0, 12.0, None, None, "not permitted")]
        assert len(bench.said) == 1


def test_a_core_without_a_ring_is_a_gap_for_as_long_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = SourceDenied("perf ring of CPU 1", "no more memory", hint="use a smaller --ring-size")
    with make_bench(tmp_path, monkeypatch, HandSampling(failed={1: error})) as bench:
        for second in (5, 10):
            bench.flush(second)
            bench.intake.follow_cpus(second * SECOND_NS)
        bench.sampling.failed, bench.sampling.added = {}, (1,)
        bench.intake.follow_cpus(12 * SECOND_NS)
        bench.flush(15)
        events = bench.log.take_new_rows()
        gaps = events["gaps"]
        assert [gaps[name] for name in ("from_ns", "to_ns", "cpu", "reason")] == [
            [0], [12 * SECOND_NS], [1], ["no more memory"],
        ]  # fmt: skip
        assert (events["events"]["kind"], events["events"]["cpu"]) == (["source_degraded"], [1])
        assert bench.said == [
            "samples: core 1 is not sampled: no more memory; use a smaller --ring-size"
        ]


def test_many_cores_without_a_ring_are_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = SourceDenied("perf ring", "no more memory")
    failed: dict[int, SourceError] = dict.fromkeys((1, 2, 3, 5), error)
    with make_bench(tmp_path, monkeypatch, HandSampling(failed=failed)) as bench:
        assert bench.said == ["samples: cores 1-3,5 are not sampled: no more memory"]


def test_what_waits_is_counted_for_whoever_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_bench(tmp_path, monkeypatch, HandSampling()) as bench:
        bench.sampling.held = [split(0, struct.pack("<IHHQ", 9, 0, 16, 0) * 3)]
        bench.drain(2)
        assert (bench.intake.samples, bench.intake.count_samples()) == (0, 3)
    assert Archive.open(tmp_path / "archive").segments() == []


def diverse(second: int) -> Chunk:
    """Deep stacks, all of them new."""
    records = b"".join(
        make.sample(9, 9, second * SECOND_NS + at, user=[0x400000 + 64 * at + 9 * second] * 50)
        for at in range(20)
    )
    return split(0, records)


def test_that_stacks_are_folded_is_said_once_until_there_was_a_segment_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = HandSampling(sampler=Sampler(cgroup=False))
    with make_bench(tmp_path, monkeypatch, sampling) as bench:
        bench.intake._novelty.allow(0.1)
        kinds: list[str] = []

        def go_on(second: int, *chunks: Chunk) -> int:
            sampling.held = list(chunks)
            bench.drain(second)
            bench.flush(second)
            kinds.extend(map(str, bench.log.take_new_rows().get("events", {}).get("kind", [])))
            return bench.intake.folded

        folded = go_on(1, diverse(1))
        assert folded > 0
        assert go_on(2, diverse(2)) > folded
        bench.intake.begin_segment(3 * SECOND_NS)
        go_on(4, diverse(4))
        assert kinds == ["stacks_folded"]
        (said,) = bench.said
        assert "rare ones keep their outer functions and their innermost one" in said
        for second in (5, 6):
            bench.intake.begin_segment(second * SECOND_NS)
            go_on(second)
        assert kinds == ["stacks_folded", "stacks_whole"]
        go_on(7, diverse(7))
        assert kinds == ["stacks_folded", "stacks_whole", "stacks_folded"]
        assert len(bench.said) == 1
