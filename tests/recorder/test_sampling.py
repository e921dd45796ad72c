"""Which rings are opened and closed, with rings made by hand."""

from __future__ import annotations

import pytest

from nodescope.recorder import sampling
from nodescope.recorder.sampling import Followed, Sampling
from nodescope.sources.perf.event import Sampler


class HandRing:
    """Notes whether it lives; holds nothing."""

    opened: list[HandRing]

    def __init__(self, cpu: int, sampler: Sampler, size_bytes: int) -> None:
        self.cpu = cpu
        self.closed = False
        HandRing.opened.append(self)

    def enable(self) -> None:
        """Nothing to switch on."""

    def head(self) -> int:
        return 0

    def drain(self, head: int) -> bytes:
        return b""

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Sampling:
    HandRing.opened = []
    monkeypatch.setattr(sampling, "Ring", HandRing)
    monkeypatch.setattr(sampling, "detect_sampler", lambda wanted, cpu: wanted)
    return Sampling(19, 1 << 16, 0)


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
