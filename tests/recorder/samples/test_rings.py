"""Which rings are opened and closed, with rings made by hand."""

from __future__ import annotations

import os
import struct
import time

import pytest

from nodescope.errors import SourceDenied
from nodescope.perf.decode import FORK, SAMPLE, decode, split
from nodescope.perf.event import Sampler
from nodescope.recorder.samples import rings
from nodescope.recorder.samples.rings import Followed, Sampling, count_samples
from nodescope.sources.node.identity import read_core_lives

SIZE = 1 << 16


class HandRing:
    """Notes whether it lives and how often it was asked; holds what it is given."""

    opened: list[HandRing]
    denied: set[int]

    def __init__(self, cpu: int, sampler: Sampler, size_bytes: int) -> None:
        if cpu in HandRing.denied:
            raise SourceDenied(f"perf ring of CPU {cpu}", "no more memory may be locked")
        self.cpu = cpu
        self.closed = False
        self.held = b""
        self.dropped = 0
        self.asked = 0
        HandRing.opened.append(self)

    def lost(self) -> int | None:
        self.asked += 1
        return self.dropped

    def enable(self) -> None:
        """Nothing to switch on."""

    def head(self) -> int:
        return 0

    def drain(self, head: int) -> bytes:
        taken, self.held = self.held, b""
        return taken

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Sampling:
    HandRing.opened, HandRing.denied = [], set()
    monkeypatch.setattr(rings, "Ring", HandRing)
    monkeypatch.setattr(rings, "detect_sampler", lambda wanted, cpu: wanted)
    return Sampling(19, SIZE, 0)


def _open() -> list[int]:
    return sorted(ring.cpu for ring in HandRing.opened if not ring.closed)


def test_cores_that_come_and_go_are_followed(sampled: Sampling) -> None:
    assert sampled.follow({0: 10, 1: 11})[0] == Followed(added=(0, 1))
    assert sampled.follow({0: 10, 1: 11})[0] == Followed()
    assert sampled.follow({0: 10})[0] == Followed(removed=(1,))
    assert sampled.follow({0: 10, 1: 12})[0] == Followed(added=(1,))
    assert _open() == sampled.cpus == [0, 1]


def test_a_core_that_was_offline_between_two_looks_is_opened_anew(sampled: Sampling) -> None:
    sampled.follow({0: 10, 1: 11})
    followed, _ = sampled.follow({0: 10, 1: 12})
    assert followed == Followed(added=(1,), removed=(1,))
    assert [ring.closed for ring in HandRing.opened] == [False, True, False]
    assert _open() == [0, 1]


def test_another_rate_is_no_new_life(sampled: Sampling) -> None:
    sampled.follow({0: 10, 1: 11})
    sampled.set_frequency(49)
    assert len(HandRing.opened) == 4
    assert sampled.follow({0: 10, 1: 11})[0] == Followed()
    assert _open() == [0, 1]


def test_a_core_without_a_ring_is_known_until_it_has_one(sampled: Sampling) -> None:
    HandRing.denied = {1}
    assert sampled.follow({0: 10, 1: 11})[0] == Followed(added=(0,))
    assert sampled.follow({0: 10, 1: 11})[0] == Followed()
    sampled.set_frequency(49)
    assert {cpu: error.reason for cpu, error in sampled.failed.items()} == {
        1: "no more memory may be locked"
    }
    HandRing.denied = set()
    assert sampled.follow({0: 10, 1: 11})[0] == Followed(added=(1,))
    assert sampled.failed == {}


def test_a_core_that_has_gone_is_not_missed(sampled: Sampling) -> None:
    HandRing.denied = {1}
    sampled.follow({0: 10, 1: 11})
    sampled.follow({0: 10})
    assert sampled.failed == {}


def record(kind: int, words: int) -> bytes:
    return struct.pack("<IHH", kind, 0, 8 * words) + b"\0" * 8 * (words - 1)


def test_the_kernel_is_asked_for_losses_only_where_there_can_be_any(sampled: Sampling) -> None:
    sampled.follow({0: 10, 1: 11})
    first, second = HandRing.opened
    first.held, first.dropped = record(SAMPLE, 4) * (SIZE // 64), 7
    second.held = record(SAMPLE, 4)
    sampled.drain()
    assert sampled.take_lost() == {0: 7}
    assert sampled.take_lost() == {}
    assert (first.asked, second.asked) == (1, 0)
    second.dropped = 2  # no ring is full, but at the end all are asked
    assert sampled.take_lost(ask_all=True) == {1: 2}


def test_what_a_ring_had_lost_when_it_was_closed_counts_once(sampled: Sampling) -> None:
    sampled.follow({0: 10})
    HandRing.opened[0].dropped = 3
    sampled.set_frequency(49)
    HandRing.opened[1].dropped = 5
    assert sampled.take_lost(ask_all=True) == {0: 8}
    sampled.close()
    assert sampled.take_lost() == {}


def test_samples_are_counted_among_other_records() -> None:
    data = record(SAMPLE, 4) + record(FORK, 5) + record(SAMPLE, 9)
    assert count_samples([split(0, data), split(1, b""), split(2, data)]) == 4


@pytest.mark.root
def test_the_kernels_own_count_is_what_the_rings_records_say_later() -> None:
    """So one of the two is enough, and both would be twice."""
    cpu = max(os.sched_getaffinity(0))
    sampled = Sampling(5000, 8192, cpu)
    if not sampled.counts_lost:
        pytest.skip("this kernel does not count")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        sampled.follow({cpu: read_core_lives()[cpu]})
        counted = told = 0
        while told == 0:  # a record of a loss comes with the first that fits again
            _run(0.2)
            told += _told(sampled)
            counted += sum(sampled.take_lost().values())
        # From now on it is drained before it can be full.
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            _run(0.001)
            told += _told(sampled)
        counted += sum(sampled.take_lost(ask_all=True).values())
    finally:
        os.sched_setaffinity(0, before)
        sampled.close()
    assert counted == told > 0


def _run(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def _told(sampled: Sampling) -> int:
    chunks = sampled.drain()
    return sum(lost for _, lost in decode(chunks, cgroup=sampled.sampler.cgroup).lost)
