from __future__ import annotations

from collections.abc import Callable

from nodescope.recorder.budget import GRACE_NS, LADDER_HZ, WINDOW_NS, Budget, Decision

SECOND = 1_000_000_000
MB = 1_000_000


def run(
    cost: Callable[[int], float], seconds: int = 900, rss: int = 50 * MB
) -> tuple[list[Decision], int]:
    """Readings every 5 s at `cost`, a share of a core by rate: the decisions, the rate at last."""
    budget, frequency, cpu = Budget(0.01, 150 * MB), 97, 0.0
    decisions = []
    for second in range(0, seconds, 5):
        decision = budget.decide(second * SECOND, int(cpu * SECOND), rss, frequency)
        if decision is not None:
            decisions.append(decision)
            frequency = decision.frequency_hz
        cpu += 5 * cost(frequency)
    return decisions, frequency


def test_within_budget_nothing_happens() -> None:
    assert run(lambda rate: 0.009) == ([], 97)


def test_over_budget_it_samples_less_and_says_how_much_it_used() -> None:
    decisions, frequency = run(lambda rate: 0.015 * rate / 97)
    assert frequency == 49
    assert [decision.message for decision in decisions] == [
        "used 1.50% of a core, over 1.00%: sampling at 49 Hz instead of 97 Hz"
    ]


def test_step_by_step_while_it_helps() -> None:
    decisions, frequency = run(lambda rate: 0.08 * rate / 97)
    assert frequency == 11
    assert [decision.frequency_hz for decision in decisions] == [49, 23, 11]


def test_a_step_that_does_not_help_is_taken_back_for_good() -> None:
    decisions, frequency = run(lambda rate: 0.02)
    assert frequency == 97
    assert [decision.kind for decision in decisions] == ["rate_lowered", "rate_restored"]
    assert "not in the sampling" in decisions[1].message


def test_start_up_is_forgiven() -> None:
    budget = Budget(0.01, 150 * MB)
    # Two seconds of CPU within the grace, then quiet.
    for second in range(0, 300, 5):
        assert budget.decide(second * SECOND, 2 * SECOND * (second > 0), 0, 97) is None


def test_one_busy_moment_is_not_half_a_window() -> None:
    budget = Budget(0.01, 150 * MB)
    budget.decide(0, 0, 0, 97)
    budget.decide(GRACE_NS, 0, 0, 97)
    assert budget.decide(GRACE_NS + WINDOW_NS // 4, SECOND, 0, 97) is None


def test_memory_counts_too_and_the_ladder_ends() -> None:
    decisions, frequency = run(lambda rate: 0.001, rss=200 * MB)
    assert frequency == LADDER_HZ[-1]
    assert decisions[0].message.startswith("used 200 MB of memory, over 150 MB")
