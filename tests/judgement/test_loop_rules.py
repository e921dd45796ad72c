"""Does it loop? The thresholds that every answer rests on."""

from __future__ import annotations

import pytest

from nodescope.judgement.loop_rules import (
    LEAST_TIMES,
    LIVED_NS,
    OVER_AFTER_NS,
    UNIT_WITHIN_NS,
    Loop,
    decide_by_counter,
    decide_child,
    decide_container,
    decide_ends,
    decide_unit,
    describe_end,
    is_often,
    mean_period_ns,
    middle_period_ns,
)
from nodescope.quantities import MINUTE_NS


def test_a_unit_loops_by_three_restarts_within_ten_minutes_and_no_good_run() -> None:
    now = 20 * MINUTE_NS
    times = [now - 11 * MINUTE_NS, now - 9 * MINUTE_NS, now - MINUTE_NS, now]
    assert decide_unit(times, [True], now) == times[1:]
    assert decide_unit(times[:-1], [True], now) == []
    assert decide_unit(times, [True, True, False], now) == []
    assert decide_unit(times, [False, True, True, True], now) == times[1:]
    assert decide_unit([now - UNIT_WITHIN_NS] * LEAST_TIMES, [], now) == []


@pytest.mark.parametrize(
    ("restarts", "waits", "just", "loops"),
    [(3, True, False, True), (3, False, True, True), (3, False, False, False),
     (2, True, True, False), (None, True, True, False)],
)  # fmt: skip
def test_a_managers_counter_counts_only_while_it_goes_on(
    restarts: int | None, waits: bool, just: bool, loops: bool
) -> None:
    assert decide_by_counter(restarts, waits=waits, just_started=just) is loops


def test_a_container_loops_if_it_is_restarted_or_fails_or_is_made_anew_very_often() -> None:
    def decide(
        starts: int, failures: int = 0, names: int | None = None, again: bool = False
    ) -> bool:
        return decide_container(starts, names=names, restarted=again, failures=failures)

    assert decide(3, again=True)
    assert decide(3, failures=2)
    assert decide(6)
    assert not decide(5)
    assert not decide(2, failures=2, again=True)
    assert not decide(9, failures=9, names=2)


def test_two_failed_ends_are_a_loop_of_a_child_only_if_it_lived() -> None:
    assert decide_child([LIVED_NS, LIVED_NS])
    assert not decide_child([LIVED_NS, 1])
    assert not decide_child([LIVED_NS])
    assert decide_child([1, 1, 1])


def test_what_began_after_a_moment_made_nothing_by_then() -> None:
    assert decide_ends(1, 2)
    assert not decide_ends(0, 9)
    assert not decide_ends(1, 1)


def test_one_look_is_not_enough() -> None:
    assert is_often(3)
    assert not is_often(9, looks=1)
    assert not is_often(2)


def test_a_loop_lasts_for_three_rounds_and_ten_minutes() -> None:
    loop = Loop(kind="unit", name="x", times=3, since_ns=0, last_ns=0, period_ns=5 * MINUTE_NS)
    assert loop.lasts(14 * MINUTE_NS)
    assert not loop.lasts(15 * MINUTE_NS)
    quick = Loop(kind="unit", name="x", times=3, since_ns=0, last_ns=0, period_ns=1)
    assert not quick.lasts(OVER_AFTER_NS)
    assert quick.lasts(OVER_AFTER_NS - 1)


def test_periods() -> None:
    assert mean_period_ns([0, 10, 50]) == 25
    assert middle_period_ns([50, 0, 10, 20]) == 10
    assert mean_period_ns([7]) is None
    assert middle_period_ns([]) is None


def test_how_it_ended_in_words() -> None:
    assert describe_end("exited", 3) == "exit code 3"
    assert describe_end("killed", 9) == "signal 9"
    assert describe_end(137) == "exit code 137"
    assert describe_end(None) is None
