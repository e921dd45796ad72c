"""How fast something grows, and when it reaches a bound."""

from __future__ import annotations

import pytest

from nodescope.judgement.growth import describe_left, find_growth
from nodescope.quantities import DAY_NS, HOUR_NS, MINUTE_NS

TIMES = [minute * MINUTE_NS for minute in range(61)]


def test_an_even_growth_has_one_rate() -> None:
    growth = find_growth(TIMES, [10 * minute for minute in range(61)])
    assert growth is not None
    assert (growth.per_hour, growth.low, growth.high) == (600, 600, 600)
    assert growth.left_ns(1200) == (HOUR_NS, HOUR_NS)


def test_a_value_holds_until_the_next_reading() -> None:
    growth = find_growth([0, 50 * MINUTE_NS, 60 * MINUTE_NS], [0, 500, 600])
    assert growth is not None
    assert not growth.steady
    left = growth.left_ns(700)
    assert left is not None
    assert left[1] is None  # it stood still: who knows how long it takes


def test_a_forecast_reaches_no_further_than_ten_times_the_look() -> None:
    growth = find_growth(TIMES, range(61))
    assert growth is not None
    assert growth.left_ns(60 + 599) is not None
    assert growth.left_ns(60 + 601) is None


@pytest.mark.parametrize(("times", "values"), [([], []), ([1, 2], [1, 2]), ([1, 1, 1], [1, 2, 3])])
def test_too_few_readings_are_no_growth(times: list[int], values: list[int]) -> None:
    assert find_growth(times, values) is None


def test_what_shrinks_reaches_nothing() -> None:
    growth = find_growth(TIMES, range(61, 0, -1))
    assert growth is not None
    assert growth.left_ns(1000) is None


def test_a_time_left_has_no_digits_that_nobody_knows() -> None:
    assert describe_left(DAY_NS + 1234567890, 2 * DAY_NS) == "24h to 2d 0h"
    assert describe_left(61 * MINUTE_NS + 999, 61 * MINUTE_NS) == "1h 1m"
    assert describe_left(90 * 10**9 + 5, None) == "1m 30s or more"
