"""How an experiment stands: exact rate ratios, and evidence that may be looked at every day.

The decision is by first events (`log_urn_e_value`): fair whatever makes some nodes fail more
often than others, and at any time. The rate ratio with its interval counts all events and
takes nodes of one arm for alike; it is an estimate, not the decision.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from nodescope.analysis.exact_tests import rate_fell, rate_ratio_interval
from nodescope.analysis.sequential import STOP_AT, Draw, log_urn_e_value
from nodescope.remedy.experiment.design import ExperimentDesign
from nodescope.remedy.experiment.templates import CONTROL

Advice = Literal["stop: it helps", "stop: no such effect", "go on", "no data"]


@dataclass(frozen=True, slots=True)
class DayOfNode:
    """What one node did on one day."""

    node: str
    day: str  # as it sorts: 2026-11-17
    node_hours: float
    events: int


@dataclass(frozen=True, slots=True)
class ArmTotal:
    """All that happened in one arm."""

    arm: str
    nodes: int
    node_hours: float
    events: int
    failed_nodes: int  # that had an event at all


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """One arm against control."""

    arm: str
    ratio: float | None
    ratio_low: float
    ratio_high: float
    p: float  # of a test that is made once; for information
    e_value: float
    stop_at: float
    advice: Advice
    hours_left: float | None = None  # by the design's sample size; None: not known

    @property
    def shown(self) -> bool:
        """Return whether the arm is shown to help."""
        return self.e_value >= self.stop_at


@dataclass(frozen=True, slots=True)
class ExperimentStatus:
    """The answer of `experiment status`."""

    days: int
    totals: tuple[ArmTotal, ...]
    comparisons: tuple[ArmComparison, ...]
    strangers: tuple[str, ...]  # nodes with data that were not assigned
    silent: tuple[str, ...]  # nodes that were assigned and have no data


def judge_experiment(design: ExperimentDesign, data: Sequence[DayOfNode]) -> ExperimentStatus:
    """Return how the arms compare so far."""
    arm_of = {each.node: each.arm for each in design.assignments}
    mine = [each for each in data if each.node in arm_of]
    totals = {arm: _total(arm, mine, arm_of) for arm in (CONTROL, *design.arms)}
    days = len({each.day for each in mine})
    seen = {each.node for each in mine}
    return ExperimentStatus(
        days,
        tuple(totals.values()),
        tuple(
            _compare(design, totals[CONTROL], totals[arm], _draws(design, mine, arm))
            for arm in design.arms
        ),
        tuple(sorted({each.node for each in data} - arm_of.keys())),
        tuple(sorted(arm_of.keys() - seen)),
    )


def _total(arm: str, data: Iterable[DayOfNode], arm_of: dict[str, str]) -> ArmTotal:
    own = [each for each in data if arm_of[each.node] == arm]
    return ArmTotal(
        arm,
        sum(each == arm for each in arm_of.values()),
        sum(each.node_hours for each in own),
        sum(each.events for each in own),
        len({each.node for each in own if each.events}),
    )


def _draws(design: ExperimentDesign, data: Iterable[DayOfNode], arm: str) -> list[Draw]:
    """Return the first events of nodes in the arm and in control, in the order of time."""
    place = {
        each.node: (each.stratum, each.arm)
        for each in design.assignments
        if each.arm in (arm, CONTROL)
    }
    by_day: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for each in data:
        if each.node in place and (each.node_hours > 0 or each.events):
            events = by_day[each.day].get(each.node, 0)
            by_day[each.day][each.node] = events + each.events
    failed: set[str] = set()
    draws: list[Draw] = []
    for _, nodes in sorted(by_day.items()):
        left = Counter(place[node] for node in nodes if node not in failed)
        for node in sorted(each for each, events in nodes.items() if events):
            if node in failed:
                continue
            stratum, own = place[node]
            draws.append(Draw(left[stratum, arm], left[stratum, CONTROL], own == arm))
            left[stratum, own] -= 1
            failed.add(node)
    return draws


def _compare(
    design: ExperimentDesign, control: ArmTotal, arm: ArmTotal, draws: Sequence[Draw]
) -> ArmComparison:
    stop_at = STOP_AT * len(design.arms)
    if not control.node_hours or not arm.node_hours:
        return ArmComparison(arm.arm, None, 0.0, math.inf, 1.0, 1.0, stop_at, "no data")
    rates = (control.events, control.node_hours, arm.events, arm.node_hours)
    low, high = rate_ratio_interval(*rates)
    e_value = math.exp(min(log_urn_e_value(draws), 700))
    futile = math.exp(min(log_urn_e_value(draws, design.ratio), 700))
    advice: Advice = "go on"
    if e_value >= stop_at:
        advice = "stop: it helps"
    elif futile >= stop_at:
        advice = "stop: no such effect"
    ratio = None
    if control.events:
        ratio = (arm.events / arm.node_hours) / (control.events / control.node_hours)
    return ArmComparison(
        arm.arm, ratio, low, high, rate_fell(*rates), e_value, stop_at, advice,
        _hours_left(design, control) if advice == "go on" else 0.0,
    )  # fmt: skip


def _hours_left(design: ExperimentDesign, control: ArmTotal) -> float | None:
    """Return the wall hours until control has the events that the design asks for."""
    if design.control_events is None or not control.events:
        return None
    missing = max(0.0, design.control_events - control.events)
    return missing / control.events * control.node_hours / max(1, control.nodes)
