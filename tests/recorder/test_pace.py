from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodescope.clock import ClockPair
from nodescope.quantities import SECOND_NS
from nodescope.recorder.pace import ClockWatch, Pace


def test_due_on_a_grid_that_does_not_drift() -> None:
    pace = Pace(100, due_ns=1000)
    assert pace.take(999) is None
    assert pace.take(1030) == 30
    assert pace.due_ns == 1100
    assert pace.take(1460) == 360  # three were missed: they are not made up for
    assert pace.due_ns == 1500


@given(st.integers(1, 10**9), st.lists(st.integers(0, 10**10), max_size=30))
def test_never_due_twice_at_one_time(interval: int, steps: list[int]) -> None:
    pace, now = Pace(interval, interval), 0
    for step in steps:
        now += step
        if pace.take(now) is not None:
            assert pace.take(now) is None
        assert now < pace.due_ns <= now + interval
        assert pace.due_ns % interval == 0


def test_a_step_is_told_with_its_size_and_sign() -> None:
    watch = ClockWatch(ClockPair(0, 1_000 * SECOND_NS))
    assert watch.step_ns(ClockPair(SECOND_NS, 1_001 * SECOND_NS)) == 0
    assert watch.step_ns(ClockPair(2 * SECOND_NS, 1_302 * SECOND_NS)) == 300 * SECOND_NS
    assert watch.step_ns(ClockPair(3 * SECOND_NS, 1_303 * SECOND_NS)) == 0
    assert watch.step_ns(ClockPair(4 * SECOND_NS, 1_294 * SECOND_NS)) == -10 * SECOND_NS


def test_slewing_is_no_step_even_after_a_long_pause() -> None:
    watch = ClockWatch(ClockPair(0, 0))
    hour = 3600 * SECOND_NS
    assert watch.step_ns(ClockPair(hour, hour + int(hour * 0.0005))) == 0
