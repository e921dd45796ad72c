"""A rollout over the nodes of a cluster in waves that never take everything down at once.

Two budgets hold at the same time: of a zone, and of a cause (the nodes that are sick for the same
reason: if the fix is wrong, they would all be wrong). A budget is a share of the pool, at least
one node and never all of it, so that a pool of three goes one by one. The first wave is one
node. A node that a person cordoned is left alone, whatever the plan says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DEFAULT_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class RolloutNode:
    """A node of a cluster, as far as a rollout must know it."""

    name: str
    zone: str
    cause: str = ""  # what makes it sick; empty: the same for all
    ready: bool = True
    cordoned_by: str = ""  # a person's cordon, or another controller's
    lease: str = ""  # who works on it now


@dataclass(frozen=True, slots=True)
class BlockedNode:
    """A node that no wave takes, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rollout:
    """Waves in their order, and the nodes that are left out."""

    waves: tuple[tuple[RolloutNode, ...], ...]
    blocked: tuple[BlockedNode, ...]
    budgets: tuple[tuple[str, int], ...]  # `zone a`, `cause x` → nodes at a time


def plan_rollout(nodes: Iterable[RolloutNode], share: float = DEFAULT_SHARE) -> Rollout:
    """Return the waves for these nodes; every node is in one wave or is blocked with a reason."""
    listed = sorted(nodes, key=lambda node: (node.zone, node.cause, node.name))
    zones = Counter(node.zone for node in listed)
    causes = Counter(node.cause for node in listed)
    blocked = [BlockedNode(node.name, why) for node in listed if (why := _why_not(node, zones))]
    left = [node for node in listed if not _why_not(node, zones)]
    waves: list[tuple[RolloutNode, ...]] = []
    while left:
        first = not waves
        wave = left[:1] if first else _fill(left, zones, causes, share)
        waves.append(tuple(wave))
        left = [node for node in left if node not in wave]
    budgets = [(f"zone {zone}", budget_of(count, share)) for zone, count in sorted(zones.items())]
    budgets += [
        (f"cause {cause}", budget_of(count, share)) for cause, count in sorted(causes.items())
        if cause
    ]  # fmt: skip
    return Rollout(tuple(waves), tuple(blocked), tuple(budgets))


def budget_of(size: int, share: float) -> int:
    """Return how many nodes of a pool may be worked on at a time: one at least, never all."""
    return max(1, min(int(size * share), size - 1))


def _why_not(node: RolloutNode, zones: Counter[str]) -> str:
    if node.cordoned_by:
        return f"cordoned by {node.cordoned_by}: a person's cordon wins; uncordon it first"
    if node.lease:
        return f"{node.lease} holds its lease: wait until that expires"
    if not node.ready:
        return "it is not ready: what was done to it could not be told from what it had"
    if zones[node.zone] == 1:
        return f"it is the only node of zone {node.zone}: nothing would be left; do it by hand"
    return ""


def _fill(
    left: Sequence[RolloutNode], zones: Counter[str], causes: Counter[str], share: float
) -> list[RolloutNode]:
    """Return as many nodes as both budgets allow, the zones in turns."""
    wave: list[RolloutNode] = []
    in_zone: Counter[str] = Counter()
    of_cause: Counter[str] = Counter()
    for node in _in_turns(left):
        fits_zone = in_zone[node.zone] < budget_of(zones[node.zone], share)
        if fits_zone and of_cause[node.cause] < budget_of(causes[node.cause], share):
            wave.append(node)
            in_zone[node.zone] += 1
            of_cause[node.cause] += 1
    return wave


def _in_turns(nodes: Sequence[RolloutNode]) -> list[RolloutNode]:
    """Return one node of each zone after the other, so that no zone waits for another."""
    seen: Counter[str] = Counter()
    turns = []
    for node in nodes:
        turns.append((seen[node.zone], node.zone, node.name, node))
        seen[node.zone] += 1
    return [node for *_, node in sorted(turns, key=lambda each: each[:3])]
