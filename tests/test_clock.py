from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.clock import ClockPair, SystemClock, read_pair


class ScriptedClock:
    """Monotonic readings from a list; the wall clock is that plus an offset."""

    def __init__(self, readings: list[int], offset_ns: int = 1_000_000) -> None:
        self._readings = iter(readings)
        self._last = 0
        self._offset_ns = offset_ns

    def monotonic_ns(self) -> int:
        self._last = next(self._readings)
        return self._last

    def wall_ns(self) -> int:
        return self._last + self._offset_ns


def test_the_narrowest_bracket_wins() -> None:
    # brackets: 100 wide, 10 wide, 50 wide
    pair = read_pair(ScriptedClock([0, 100, 200, 210, 300, 350]))
    assert pair == ClockPair(monotonic_ns=205, wall_ns=1_000_200)


def test_tries_bounds_the_readings() -> None:
    assert read_pair(ScriptedClock([7, 9]), tries=1).monotonic_ns == 8
    with pytest.raises(StopIteration):
        read_pair(ScriptedClock([7, 9]), tries=2)


@given(st.lists(st.integers(0, 10**6), min_size=6, max_size=6), st.integers(-(10**18), 10**18))
def test_the_offset_is_right_to_within_half_the_narrowest_bracket(
    steps: list[int], offset_ns: int
) -> None:
    readings = [sum(steps[: index + 1]) for index in range(6)]
    pair = read_pair(ScriptedClock(readings, offset_ns))
    narrowest = min(
        after - before for before, after in zip(readings[::2], readings[1::2], strict=True)
    )
    assert abs(pair.offset_ns - offset_ns) <= narrowest / 2 + 1


def test_system_clock_is_the_kernels_monotonic_and_real_time() -> None:
    clock = SystemClock()
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert before <= clock.monotonic_ns() <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert abs(clock.wall_ns() - time.time_ns()) < 10**9
