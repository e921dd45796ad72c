from __future__ import annotations

import math
import random

import pytest

from nodescope.analysis.sequential import (
    STOP_AT,
    control_events_needed,
    find_power,
    log_e_value,
)


def test_sample_sizes_of_the_exact_test() -> None:
    assert control_events_needed(0.2) == pytest.approx(13, abs=0.5)
    assert control_events_needed(0.5) == pytest.approx(40, abs=1)
    assert find_power(40, 0.5) == pytest.approx(0.8, abs=0.02)


def test_eight_events_all_in_control_are_enough() -> None:
    assert math.exp(log_e_value(0, 8, 0.5)) > STOP_AT
    assert log_e_value(8, 8, 0.5) < 0
    assert log_e_value(0, 0, 0.5) == pytest.approx(0)
    assert log_e_value(0, 3, 1) == 0  # one arm alone compares with nothing


def test_the_expected_e_value_of_no_effect_is_one() -> None:
    for events in (1, 5, 12):
        total = sum(
            math.comb(events, treated) * 0.3**treated * 0.7 ** (events - treated)
            * math.exp(log_e_value(treated, events, 0.3))
            for treated in range(events + 1)
        )  # fmt: skip
        assert total == pytest.approx(1)


def test_looking_after_each_event_stays_below_five_percent() -> None:
    chance = random.Random(4)
    false = 0
    for _ in range(300):
        treated = 0
        for events in range(1, 60):
            treated += chance.random() < 0.5
            if log_e_value(treated, events, 0.5) >= math.log(STOP_AT):
                false += 1
                break
    assert false / 300 <= 0.05
