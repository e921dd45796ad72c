from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from nodescope.quantities import SECOND_NS
from nodescope.recorder.budget import (
    GRACE_NS,
    MOST_PATIENCE_NS,
    PATIENCE_NS,
    WINDOW_NS,
    Budget,
    Decision,
)
from nodescope.recorder.samples.novelty import TIGHTEST

MB = 1_000_000
MINUTE, HOUR = 60, 3600


@dataclass
class Node:
    """A recorder whose cost is made up: readings every 5 s, and what the budget makes of them."""

    budget: Budget = field(default_factory=lambda: Budget(0.01, 150 * MB))
    frequency: int = 97
    diverse: bool = False
    folding: int = 0
    second: int = 0
    cpu: float = 0.0
    decisions: list[Decision] = field(default_factory=list)
    at: list[int] = field(default_factory=list)  # the second of each decision

    def run(
        self,
        cost: Callable[[int], float],
        seconds: int = 900,
        rss: Callable[[int], int] = lambda rate: 50 * MB,
    ) -> list[Decision]:
        """`cost` is a share of a core and `rss` bytes, both by rate: the decisions they led to."""
        known = len(self.decisions)
        for _ in range(0, seconds, 5):
            decision = self.budget.decide(
                self.second * SECOND_NS,
                int(self.cpu * SECOND_NS),
                rss(self.frequency),
                self.frequency,
                diverse=self.diverse,
            )
            if decision is not None:
                self.decisions.append(decision)
                self.at.append(self.second)
                self.frequency = decision.frequency_hz
                self.folding = decision.folding
            self.second += 5
            self.cpu += 5 * cost(self.frequency)
        return self.decisions[known:]


def by_rate(at_97_hz: float) -> Callable[[int], float]:
    """A cost that is all in the sampling."""
    return lambda rate: at_97_hz * rate / 97


def kinds(decisions: list[Decision]) -> list[str]:
    return [decision.kind for decision in decisions]


def test_within_budget_nothing_happens() -> None:
    assert Node().run(lambda rate: 0.009) == []


def test_over_budget_it_samples_less_and_says_how_much_it_used() -> None:
    node = Node()
    (decision,) = node.run(by_rate(0.015))
    assert node.frequency == 49
    assert (
        decision.message == "used 1.50% of a core, over 1.00%: sampling at 49 Hz instead of 97 Hz"
    )
    assert decision.loud


def test_where_stacks_are_diverse_more_of_them_are_folded_before_a_sample_less_is_taken() -> None:
    node = Node(diverse=True)
    decisions = node.run(lambda rate: 0.02 / (1 + node.folding), 10 * MINUTE)
    assert kinds(decisions) == ["folding_tightened"]
    assert (node.frequency, node.folding) == (97, 1)
    assert decisions[0].message == (
        "used 2.00% of a core, over 1.00%: folding more of the stacks that are new"
    )


def test_folding_that_does_not_suffice_is_followed_by_a_lower_rate() -> None:
    node = Node(diverse=True)
    decisions = node.run(by_rate(0.015))
    assert kinds(decisions) == ["folding_tightened"] * TIGHTEST + ["rate_lowered"]
    assert (node.frequency, node.folding) == (49, TIGHTEST)


def test_memory_is_no_reason_to_fold_more() -> None:
    node = Node(diverse=True)
    decisions = node.run(lambda rate: 0.001, 5 * MINUTE, rss=lambda rate: 200 * MB)
    assert "folding_tightened" not in kinds(decisions)


def test_less_is_folded_again_when_there_was_room_for_long() -> None:
    node = Node(diverse=True)
    node.run(lambda rate: 0.015, 2 * MINUTE)
    assert node.folding == 1
    decisions = node.run(lambda rate: 0.008, HOUR)  # it would be too much again
    assert decisions == []
    decisions = node.run(lambda rate: 0.004, HOUR)
    assert (kinds(decisions), node.folding) == (["folding_relaxed"], 0)


def test_step_by_step_while_it_helps() -> None:
    node = Node()
    assert [decision.frequency_hz for decision in node.run(by_rate(0.08))] == [49, 23, 11]
    assert node.run(by_rate(0.08), 2 * HOUR) == []


def test_a_step_that_does_not_help_is_taken_back() -> None:
    node = Node()
    decisions = node.run(lambda rate: 0.02, 10 * MINUTE)
    assert node.frequency == 97
    assert kinds(decisions) == ["rate_lowered", "rate_restored"]
    assert "not in the sampling" in decisions[1].message


def test_what_did_not_help_is_tried_again_less_and_less_often_and_said_once() -> None:
    node = Node()
    decisions = node.run(lambda rate: 0.02, 24 * HOUR)
    lowered = [second for second, kind in zip(node.at, kinds(decisions), strict=True)
               if kind == "rate_lowered"]  # fmt: skip
    assert kinds(decisions) == ["rate_lowered", "rate_restored"] * len(lowered)
    apart = [after - before for before, after in pairwise(lowered)]
    assert apart[0] >= PATIENCE_NS // SECOND_NS
    assert apart == sorted(apart)
    assert apart[-1] >= MOST_PATIENCE_NS // SECOND_NS
    assert [decision.loud for decision in decisions] == [True, True] + [False] * (
        len(decisions) - 2
    )
    assert node.frequency == 97


def test_a_cost_that_rises_well_above_what_was_let_be_is_acted_upon() -> None:
    node = Node()
    node.run(lambda rate: 0.012, 3 * MINUTE)
    assert kinds(node.decisions) == ["rate_lowered", "rate_restored"]
    # No patience is waited for: it is another trouble, and a lower rate helps.
    more = node.run(by_rate(0.6), 5 * MINUTE)
    assert [decision.frequency_hz for decision in more] == [49, 23, 11, 5]
    assert all(decision.loud for decision in more)


def test_cpu_that_is_let_be_does_not_excuse_memory() -> None:
    node = Node()
    node.run(lambda rate: 0.012, 3 * MINUTE)
    more = node.run(lambda rate: 0.012, 2 * MINUTE, rss=lambda rate: 5000 * MB)
    assert kinds(more) == ["rate_lowered", "rate_restored"]
    assert "5000 MB of memory, over 150 MB" in more[0].message


def test_memory_that_the_rate_does_not_change_costs_no_samples() -> None:
    node = Node(Budget(0.01, 40 * MB))
    decisions = node.run(lambda rate: 0.001, 5 * MINUTE, rss=lambda rate: 85 * MB)
    assert kinds(decisions) == ["rate_lowered", "rate_restored"]
    assert node.at[1] - node.at[0] >= WINDOW_NS // 2 // SECOND_NS
    assert decisions[0].message.startswith("used 85 MB of memory, over 40 MB: sampling at 49 Hz")
    assert "at 49 Hz as at 97 Hz" in decisions[1].message
    assert node.frequency == 97


def test_memory_that_the_rate_does_change_is_kept_within_bounds() -> None:
    node = Node()
    node.run(lambda rate: 0.001, 5 * MINUTE, rss=lambda rate: 40 * MB + rate * 3 * MB)
    assert [decision.frequency_hz for decision in node.decisions] == [49, 23]


def test_at_the_end_of_the_ladder_nothing_more_is_said() -> None:
    node = Node()
    node.run(by_rate(5.0), 10 * MINUTE)
    assert node.frequency == 5
    assert node.run(by_rate(5.0), HOUR) == []


def test_after_calm_minutes_the_rate_is_raised_step_by_step() -> None:
    node = Node()
    node.run(by_rate(0.03), 5 * MINUTE)
    assert node.frequency == 23
    quiet_since = node.second
    raised = node.run(by_rate(0.004), HOUR)
    assert [(decision.kind, decision.frequency_hz) for decision in raised] == [
        ("rate_raised", 49),
        ("rate_raised", 97),
    ]
    assert raised[0].message == ("its cost allows more: sampling at 49 Hz again instead of 23 Hz")
    first, second = node.at[-2:]
    assert first - quiet_since >= PATIENCE_NS // SECOND_NS - WINDOW_NS // SECOND_NS
    assert second - first >= PATIENCE_NS // SECOND_NS


def test_it_is_not_raised_to_what_was_too_much() -> None:
    node = Node()
    node.run(by_rate(0.015), 5 * MINUTE)
    assert node.frequency == 49
    assert node.run(by_rate(0.0125), 6 * HOUR) == []


def test_a_cost_that_is_not_in_the_sampling_does_not_keep_the_rate_low() -> None:
    node = Node()
    node.run(lambda rate: 0.005 + 0.006 * rate / 97, 5 * MINUTE)
    assert node.frequency == 49
    # Doubling what is used now would be over the limit; the step itself told that it will not.
    assert kinds(node.run(lambda rate: 0.005 + 0.003 * rate / 97, HOUR)) == ["rate_raised"]


def test_a_load_that_comes_and_goes_does_not_make_it_flap() -> None:
    node = Node()
    for _ in range(48):  # half an hour each: ten minutes of load, twenty of calm
        node.run(by_rate(0.02), 10 * MINUTE)
        node.run(by_rate(0.002), 20 * MINUTE)
    assert 0 < kinds(node.decisions).count("rate_raised") <= 4


def test_start_up_is_forgiven() -> None:
    budget = Budget(0.01, 150 * MB)
    # Two seconds of CPU within the grace, then quiet.
    for second in range(0, 300, 5):
        assert budget.decide(second * SECOND_NS, 2 * SECOND_NS * (second > 0), 0, 97) is None


def test_one_busy_moment_is_not_half_a_window() -> None:
    budget = Budget(0.01, 150 * MB)
    budget.decide(0, 0, 0, 97)
    budget.decide(GRACE_NS, 0, 0, 97)
    assert budget.decide(GRACE_NS + WINDOW_NS // 4, SECOND_NS, 0, 97) is None


def test_one_second_of_work_in_a_minute_is_made_sure_of_and_forgotten() -> None:
    node = Node()
    node.run(lambda rate: 0.002, 5 * MINUTE)
    node.cpu += 1.0  # 1.7 % of the minute that follows
    assert node.run(lambda rate: 0.002, 5 * MINUTE) == []


def test_what_reading_along_costs_is_forgiven_but_not_its_memory() -> None:
    budget = Budget(0.01, 150 * MB)
    for second in range(0, 300, 5):
        assert budget.decide(second * SECOND_NS, second * SECOND_NS // 2, 0, 97) is None
        budget.forgive()
    decision = budget.decide(300 * SECOND_NS, 150 * SECOND_NS, 200 * MB, 97)
    assert decision is not None
    assert "200 MB of memory" in decision.message
