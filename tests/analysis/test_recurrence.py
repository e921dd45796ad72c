from __future__ import annotations

import random
from itertools import accumulate

import pytest

from nodescope.analysis.recurrence import (
    Recurrence,
    Slope,
    estimate_overdispersion,
    few_probability,
    find_slope,
    flat_probability,
    longest_gap,
    silence_probability,
)


def test_ten_minutes_of_silence_are_no_chance_for_a_loop_of_21_seconds() -> None:
    loop = Recurrence(count=171, exposure_s=3600, overdispersion=0.01, longest_gap_s=23)
    assert silence_probability(loop, 600, 600) < 1e-9
    assert silence_probability(loop, 20, 20) == 1  # shorter than its longest rest
    assert silence_probability(loop, 60, 60) > 0.01  # three rounds prove nothing


def test_a_back_off_is_no_cure() -> None:
    starts = Recurrence(count=8, exposure_s=120, overdispersion=0.1, longest_gap_s=60)
    assert silence_probability(starts, 290, 290) < 0.01
    waiting = Recurrence(8, 120, 0.1, 60, backoff_s=300)
    assert silence_probability(waiting, 290, 290) == 1
    assert silence_probability(waiting, 3600, 3600) < 0.01


def test_what_nobody_watched_is_no_silence() -> None:
    loop = Recurrence(count=20, exposure_s=600, overdispersion=0.05, longest_gap_s=32)
    assert silence_probability(loop, 600, 600) < 0.001
    assert silence_probability(loop, 600, 30) == 1  # in pieces shorter than a rest


def test_few_observations_are_little_evidence() -> None:
    once = few_probability(Recurrence(1, 60, 0.1), 0, 600)
    often = few_probability(Recurrence(100, 6000, 0.1), 0, 600)
    assert often < 0.02 < once
    assert few_probability(Recurrence(0, 60, 0.1), 0, 600) == 1


def test_overdispersion_shows_at_the_scale_that_has_it() -> None:
    chance = random.Random(1)
    steady = list(accumulate(chance.expovariate(0.1) for _ in range(400)))
    bursts = [at for start in range(0, 4000, 800) for at in range(start, start + 200, 2)]
    assert estimate_overdispersion(steady, 0, steady[-1]) < 0.2
    assert estimate_overdispersion([float(each) for each in bursts], 0, 4000) > 0.5
    assert longest_gap([5, 1, 2]) == 3
    assert longest_gap([5]) is None


def test_a_level_that_stands_still_differs_from_one_that_grows() -> None:
    times = [float(10 * at) for at in range(200)]
    slope = find_slope(times, [each / 20 for each in times])
    assert slope is not None
    assert slope.per_s == pytest.approx(1 / 20)
    assert flat_probability(slope, 0, 600) < 0.01
    assert flat_probability(slope, 1 / 20, 600) == pytest.approx(0.5)
    assert flat_probability(slope, 0, 30) > 0.01  # one or two zombies would be due
    assert flat_probability(Slope(0, 0, 100, 8), 0, 600) == 1  # it never grew


def test_a_saw_tooth_differs_too_much_among_its_blocks() -> None:
    times = [float(10 * at) for at in range(360)]
    teeth = find_slope(times, [each % 700 for each in times])
    assert teeth is not None
    assert flat_probability(teeth, -0.1, 600) > 0.05
    assert find_slope([0, 1], [1, 2]) is None
