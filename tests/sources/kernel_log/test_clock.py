from __future__ import annotations

import time

import pytest

from nodescope.errors import SourceError
from nodescope.sources.kernel_log.clock import SAME_CLOCK, KernelClock, Offset


def test_what_the_clocks_part_by_has_grown_evenly_since_boot() -> None:
    offset = Offset(ns=-2_000, kernel_ns=1_000_000, uncertainty_ns=5)
    assert offset.monotonic_ns(1_000_000) == 998_000
    assert offset.monotonic_ns(500_000) == 499_000
    assert offset.monotonic_ns(0) == 0
    assert SAME_CLOCK.monotonic_ns(123_456) == 123_456


@pytest.mark.live
def test_the_kernel_s_clock_is_read_between_two_of_ours() -> None:
    try:
        clock = KernelClock()
    except SourceError as error:
        pytest.skip(f"no perf events here: {error}")
    try:
        before = time.monotonic_ns()
        first = clock.read_offset()
        after = time.monotonic_ns()
        moment = first.monotonic_ns(first.kernel_ns)
        assert before - first.uncertainty_ns <= moment <= after + first.uncertainty_ns
        # The ring is emptied each time, and wraps.
        times = [clock.read_offset().kernel_ns for _ in range(300)]
        assert times == sorted(times)
        assert times[0] > first.kernel_ns
    finally:
        clock.close()
