from __future__ import annotations

import numpy as np
import pytest

from nodescope.analysis.epochs import (
    LAGS,
    SPAN,
    Epoch,
    Ranked,
    average_epochs,
    normal_ranks,
    stouffer,
    whole_events,
)
from nodescope.arrays import F64

SURELY = 0.05


def noise(length: int, seed: int) -> F64:
    """Each second has nine tenths of the one before."""
    random = np.random.default_rng(seed)
    values: F64 = np.convolve(random.normal(size=length + 79), 0.9 ** np.arange(80), "valid")
    return values


def around(values: F64, *events: int) -> Epoch:
    found = average_epochs(Ranked(values), np.array(events))
    assert found is not None
    return found


def test_what_precedes_the_events_is_found_with_its_lag() -> None:
    values = noise(7200, 1)
    events = (900, 2500, 4100, 5900)
    for event in events:
        values[event - 8 : event - 2] += 12
    found = around(values, *events)
    assert -9 <= found.lag_s <= -2
    assert found.average > 1.5
    assert found.p < 0.02
    assert (found.events, found.unusual) == (4, 4)


def test_events_that_do_not_show_it_by_themselves_are_not_counted() -> None:
    values = noise(7200, 1)
    for event in (900, 2500, 4100):
        values[event - 8 : event - 2] += 12
    values[5900 - 8 : 5900 - 2] -= 3
    found = around(values, 900, 2500, 4100, 5900)
    assert found.p < 0.05
    assert (found.events, found.unusual) == (4, 3)


def test_the_null_is_that_of_every_shift() -> None:
    """Against the definition, spelled out."""
    values, events = noise(900, 2), np.array([200, 410, 600])
    found = around(values, *events.tolist())
    ranks = normal_ranks(values - np.median(values))
    lags = np.arange(*LAGS)

    def largest(shift: int) -> float:
        at = (events[:, np.newaxis] + lags + shift) % len(values)
        return float(np.abs(ranks[at].mean(axis=0)).max())

    others = [largest(shift) for shift in range(SPAN, len(values) - SPAN)]
    assert abs(found.average) == pytest.approx(largest(0))
    as_large = sum(each >= largest(0) - 1e-12 for each in others)
    assert found.p == pytest.approx((1 + as_large) / (1 + len(others)))


def test_noise_is_rarely_taken_for_a_sign() -> None:
    ps = [around(noise(7200, seed + 10), 900, 2500, 4100, 5900).p for seed in range(40)]
    assert sum(p <= SURELY for p in ps) <= 6


def test_nor_is_it_around_events_closer_together_than_the_lags() -> None:
    ps = [around(noise(7200, seed + 60), 900, 920, 960, 4100, 4115).p for seed in range(40)]
    assert sum(p <= SURELY for p in ps) <= 6


def test_what_grows_does_not_stand_out_because_the_events_are_late() -> None:
    random = np.random.default_rng(5)
    ramp = np.linspace(0, 30, 6 * 3600)
    ps = [
        around(noise(len(ramp), seed) + ramp, *random.integers(18_000, 21_500, 4).tolist()).p
        for seed in range(60)
    ]
    assert sum(p <= SURELY for p in ps) <= 5


def test_a_gap_is_not_taken_for_a_quiet_time() -> None:
    # Most of these hours were not recorded: there shifted events would find nothing.
    ps = []
    for seed in range(40):
        values = noise(4 * 3600, seed + 100)
        values[2000:12_000] = np.nan
        ps.append(around(values, 400, 1100, 12_700, 13_500).p)
    assert sum(p <= SURELY for p in ps) <= 5


def test_late_readings_are_no_gap() -> None:
    values = noise(7200, 1)
    values[895:900] = np.nan
    assert around(values, 900, 2500, 4100).events == 3


def test_events_at_an_end_or_a_gap_are_left_out() -> None:
    values = noise(7200, 1)
    values[3000:3020] = np.nan
    metric = Ranked(values)
    events = np.array([-5, 119, 120, 2970, 2971, 3139, 3140, 5000, 5000, 7170, 7171, 9999])
    assert whole_events(metric, events).tolist() == [120, 2970, 3140, 5000, 7170]
    found = average_epochs(metric, events)
    assert found is not None
    assert found.events == 5


def test_too_few_events_or_a_constant_say_nothing() -> None:
    three = np.array([900, 2500, 4100])
    assert average_epochs(Ranked(noise(7200, 1)), three[:2]) is None
    assert average_epochs(Ranked(noise(7200, 1)), three[[0, 0, 1]]) is None  # one of them twice
    assert average_epochs(Ranked(np.ones(7200)), three) is None
    assert average_epochs(Ranked(np.full(7200, np.nan)), three) is None
    assert average_epochs(Ranked(noise(200, 1)), np.array([130, 140, 150])) is None
    assert average_epochs(Ranked(np.empty(0)), three) is None


def test_ranks_are_normal_whatever_the_values() -> None:
    values = np.exp(noise(5001, 3))
    ranks = normal_ranks(values)
    assert abs(ranks.mean()) < 0.01
    assert ranks.std() == pytest.approx(1, abs=0.02)
    assert (np.argsort(ranks) == np.argsort(values)).all()
    assert normal_ranks(np.array([np.nan, 1.0, 2.0, 1.0]))[0] == 0


def test_values_that_stand_rank_as_each_of_their_seconds() -> None:
    held = np.repeat([3.0, 1.0, 3.0, 2.0], [2, 3, 1, 4])
    ranks = normal_ranks(held)
    # Of ten seconds: 1 has ranks 0 to 2, 2 has 3 to 6, 3 has 7 to 9.
    low, middle, high = (ranks[held == value] for value in (1, 2, 3))
    assert low == pytest.approx([-1.0364] * 3, abs=1e-3)  # of 0.15
    assert middle == pytest.approx([0.0] * 4, abs=1e-3)
    assert high == pytest.approx([1.0364] * 3, abs=1e-3)


def test_probabilities_are_combined() -> None:
    assert stouffer([0.05]) == pytest.approx(0.05, abs=1e-3)
    assert stouffer([0.05, 0.05, 0.05]) == pytest.approx(0.0022, abs=3e-4)
    assert stouffer([0.5, 0.5]) == pytest.approx(0.5, abs=1e-3)
