from __future__ import annotations

import numpy as np
import pytest

from nodescope.analysis.epochs import average_epochs, normal_ranks, stouffer


def noise(length: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    random = np.random.default_rng(seed)
    values = np.empty(length)
    values[0] = 0
    for at in range(1, length):
        values[at] = 0.9 * values[at - 1] + random.normal()
    return values


def test_what_precedes_the_events_is_found_with_its_lag() -> None:
    values = noise(7200, 1)
    events = np.array([900, 2500, 4100, 5900])
    for event in events:
        values[event - 8 : event - 2] += 12
    found = average_epochs(values, events)
    assert found is not None
    assert -9 <= found.lag_s <= -2
    assert found.average > 1.5
    assert found.p < 0.02


def test_noise_is_rarely_taken_for_a_sign() -> None:
    events = np.array([900, 2500, 4100, 5900])
    ps = [
        found.p for seed in range(40) if (found := average_epochs(noise(7200, seed + 10), events))
    ]
    assert sum(p <= 0.05 for p in ps) <= 6


def test_too_few_events_or_a_constant_say_nothing() -> None:
    assert average_epochs(noise(7200, 1), np.array([900, 2500])) is None
    assert average_epochs(np.ones(7200), np.array([900, 2500, 4100])) is None
    assert average_epochs(noise(200, 1), np.array([130, 140, 150])) is None


def test_ranks_are_normal_whatever_the_values() -> None:
    values = np.exp(noise(5001, 3))
    ranks = normal_ranks(values)
    assert abs(ranks.mean()) < 0.01
    assert ranks.std() == pytest.approx(1, abs=0.02)
    assert (np.argsort(ranks) == np.argsort(values)).all()
    assert normal_ranks(np.array([np.nan, 1.0, 2.0, 1.0]))[0] == 0


def test_probabilities_are_combined() -> None:
    assert stouffer([0.05]) == pytest.approx(0.05, abs=1e-3)
    assert stouffer([0.05, 0.05, 0.05]) == pytest.approx(0.0022, abs=3e-4)
    assert stouffer([0.5, 0.5]) == pytest.approx(0.5, abs=1e-3)
