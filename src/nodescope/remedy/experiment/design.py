"""Who gets which arm, and how long it takes: decided before the start, by chance and a seed.

Nodes are assigned at random within strata: nodes of one zone whose boot ages are next to each
other, as the hazard grows with the time since boot. Every arm has as many nodes of a stratum
as any other, give or take one.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.analysis.exact_tests import poisson_interval
from nodescope.analysis.sequential import control_events_needed
from nodescope.errors import UsageError
from nodescope.remedy.experiment.templates import CONTROL

FALSE_POSITIVES = 0.05
_PER_ARM = 4  # nodes of an arm in a stratum, where the zone has enough


@dataclass(frozen=True, slots=True)
class CandidateNode:
    """A node that may take part, with its past; None: not known."""

    name: str
    zone: str = ""
    boot_age_h: float | None = None
    events: int | None = None
    node_hours: float | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """One node, its stratum and its arm."""

    node: str
    stratum: str
    arm: str


@dataclass(frozen=True, slots=True)
class ExperimentDesign:
    """An experiment before its start."""

    arms: tuple[str, ...]  # without control
    ratio: float  # of rates, treatment ÷ control, that is to be found
    power: float
    seed: int
    assignments: tuple[Assignment, ...]
    rate_per_h: float | None  # of a node, by its past; None: not known
    rate_low: float | None
    rate_high: float | None
    control_events: float | None  # needed in control; None: too many to be practical
    hours_needed: float | None  # on the wall clock, with these nodes

    def count(self, arm: str) -> int:
        """Return how many nodes an arm has."""
        return sum(each.arm == arm for each in self.assignments)


def design_experiment(
    nodes: Sequence[CandidateNode], arms: Sequence[str], ratio: float, power: float, seed: int
) -> ExperimentDesign:
    """Return the assignment of nodes to control and the arms, and what it takes."""
    names = [each.name for each in nodes]
    if len(set(names)) < len(names):
        raise UsageError("two nodes have the same name", hint="each stands in the file once")
    if CONTROL in arms or len(set(arms)) < len(arms):
        raise UsageError("an arm is named twice", hint=f"`{CONTROL}` is always there")
    groups = (CONTROL, *arms)
    if len(nodes) < 2 * len(groups):
        raise UsageError(
            f"{len(nodes)} nodes for {len(groups)} arms", hint="each arm needs two nodes or more"
        )
    assignments = _assign(nodes, groups, random.Random(seed))
    rate, low, high = _past_rate(nodes)
    control = sum(each.arm == CONTROL for each in assignments)
    least = min(sum(each.arm == arm for each in assignments) for arm in arms)
    events = control_events_needed(
        ratio, least / (least + control), FALSE_POSITIVES / len(arms), power
    )
    hours = None if events is None or not rate else events / (rate * control)
    return ExperimentDesign(
        tuple(arms), ratio, power, seed, assignments, rate, low, high, events, hours
    )


def _assign(
    nodes: Sequence[CandidateNode], groups: Sequence[str], chance: random.Random
) -> tuple[Assignment, ...]:
    found = []
    for stratum, members in _strata(nodes, len(groups)):
        labels = [groups[at % len(groups)] for at in range(len(members))]
        spare = len(members) % len(groups)
        if spare:  # the last round is not whole: by lot, which arms have one more
            labels[-spare:] = chance.sample(list(groups), spare)
        chance.shuffle(labels)
        found += [
            Assignment(node.name, stratum, arm) for node, arm in zip(members, labels, strict=True)
        ]
    return tuple(sorted(found, key=lambda each: each.node))


def _strata(nodes: Sequence[CandidateNode], groups: int) -> list[tuple[str, list[CandidateNode]]]:
    """Return nodes of one zone and like boot age; a small rest joins its neighbours."""
    zones: defaultdict[str, list[CandidateNode]] = defaultdict(list)
    for node in sorted(nodes, key=lambda each: each.name):
        zones[node.zone].append(node)
    size = _PER_ARM * groups
    strata = []
    for zone, members in sorted(zones.items()):
        members.sort(key=lambda each: (each.boot_age_h is None, each.boot_age_h or 0.0))
        count = max(1, len(members) // size)
        edges = [len(members) * at // count for at in range(count + 1)]
        for at in range(count):
            some = members[edges[at] : edges[at + 1]]
            strata.append((f"{zone or 'all'}/{at + 1}", some))
    return strata


def _past_rate(
    nodes: Sequence[CandidateNode],
) -> tuple[float | None, float | None, float | None]:
    """Return events per node-hour in the past, with the exact interval."""
    known = [(each.events, each.node_hours) for each in nodes]
    pairs = [(events, hours) for events, hours in known if events is not None and hours]
    events, hours = sum(each for each, _ in pairs), sum(each for _, each in pairs)
    if not hours:
        return None, None, None
    low, high = poisson_interval(events)
    return events / hours, low / hours, high / hours
