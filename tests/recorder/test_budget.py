from __future__ import annotations

from nodescope.recorder.budget import GRACE_NS, WINDOW_NS, Budget, next_lower

SECOND = 1_000_000_000
MB = 1_000_000


def run(budget: Budget, seconds: int, ratio: float, rss: int = 50 * MB) -> list[str]:
    """Readings every 5 s at a steady cost; what it complained about."""
    said = []
    for second in range(0, seconds, 5):
        now = second * SECOND
        why = budget.over(now, int(now * ratio), rss)
        if why:
            said.append(why)
    return said


def test_within_budget_nothing_is_said() -> None:
    assert run(Budget(0.01, 150 * MB), 600, 0.009) == []


def test_over_budget_says_how_much() -> None:
    said = run(Budget(0.01, 150 * MB), 600, 0.02)
    assert said
    assert said[0] == "2.00% of a core, over 1.00%"


def test_start_up_is_forgiven() -> None:
    budget = Budget(0.01, 150 * MB)
    assert budget.over(0, 0, 50 * MB) is None
    # Two seconds of CPU within the grace, then quiet.
    spent = 2 * SECOND
    for second in range(5, 300, 5):
        assert budget.over(second * SECOND, spent, 50 * MB) is None


def test_one_busy_moment_is_not_half_a_window() -> None:
    budget = Budget(0.01, 150 * MB)
    budget.over(0, 0, 0)
    budget.over(GRACE_NS, 0, 0)
    assert budget.over(GRACE_NS + WINDOW_NS // 4, SECOND, 0) is None


def test_memory_counts_too() -> None:
    budget = Budget(0.01, 150 * MB)
    budget.over(0, 0, 0)
    assert budget.over(GRACE_NS, 0, 200 * MB) == "200 MB of memory, over 150 MB"


def test_after_lowering_the_old_rate_is_not_blamed_again() -> None:
    budget = Budget(0.01, 150 * MB)
    run(budget, 300, 0.02)
    budget.lowered()
    assert budget.over(301 * SECOND, 6 * SECOND, 0) is None


def test_the_ladder_ends() -> None:
    steps = [97]
    while (lower := next_lower(steps[-1])) is not None:
        steps.append(lower)
    assert steps == [97, 49, 23, 11, 5]
