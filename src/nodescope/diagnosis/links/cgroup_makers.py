"""Whose the processes are that make the cgroups of a place, by the cgroup that they are in.

A script may make cgroups anywhere, through programs that live for milliseconds. The kernel
tells with each cgroup which cgroup its maker was in, and that is its unit's or container's:
no loop, no name and no place in the tree is needed to know whose they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Root
from nodescope.diagnosis.links.owners import find_root, why_link
from nodescope.judgement.cgroup_churn import Churn
from nodescope.judgement.loop_rules import LEAST_TIMES
from nodescope.judgement.unit_insides import FOR_OTHERS
from nodescope.judgement.zombie_parents import ZombieParent
from nodescope.records.node_tables import UnitRow
from nodescope.records.view import View, around
from nodescope.sources.cgroups.name_pattern import lies_in

MOST_OF_THEM = 0.5  # of what is known to stay in a place: with less, others matter as much


@dataclass(frozen=True, slots=True)
class Maker:
    """A unit, container or pod whose processes made most of what stays in a place."""

    root: Root
    place: str
    cgroup: str  # of its processes
    churned: tuple[Churn, ...]
    share: float  # of what is known to stay there

    @property
    def unreleased(self) -> int:
        return sum(each.unreleased or 0 for each in self.churned)

    @property
    def comms(self) -> str:
        """Return the names of the processes, those that leave most first."""
        return ", ".join(dict.fromkeys(each.maker for each in self.churned if each.maker))


def find_maker(
    case: Case, place: ZombieParent, churned: Sequence[Churn], at_ns: int
) -> Maker | None:
    """Return who made most of what stays in a place; None where nothing tells, or nobody did.

    `churned` is added up by maker. Container runtimes and the kubelet make the cgroups of
    others: they are nobody here.
    """
    here = [each for each in churned if each.parent == place.path and each.unreleased]
    stays = sum(each.unreleased or 0 for each in here)
    by_root: defaultdict[Root, list[Churn]] = defaultdict(list)
    for each in here:
        root = find_root(case, each.maker_cgroup, at_ns) if each.maker_cgroup else None
        if root is not None and root.name not in FOR_OTHERS:
            by_root[root].append(each)
    for root, mine in by_root.items():
        count = sum(each.unreleased or 0 for each in mine)
        if count >= LEAST_TIMES and count > MOST_OF_THEM * stays:
            cgroup = mine[0].maker_cgroup
            assert cgroup is not None
            return Maker(root, place.path, cgroup, tuple(mine), count / stays)
    return None


def make_links(maker: Maker, units: Sequence[UnitRow], at_ns: int) -> list[Link]:
    """Return the link from a place to its maker, and why that is there, where it is a unit."""
    named = ", ".join(dict.fromkeys(each.pattern for each in maker.churned))
    stays = f"{maker.unreleased:,} that were removed and not released"
    source = Link(
        "source", maker.root.name,
        f"{maker.root.kind} {maker.root.name} makes them: the kernel saw {maker.comms or 'it'} in "
        f"{maker.cgroup} make {stays} below {maker.place}, named {named}"
        + ("" if maker.share > 0.99 else f" ({maker.share:.0%} of what stays there)"),
        3.0 + 2.0 * maker.share,
        View("table", around(at_ns, 900), table="cgroup_churn",
             where=(("maker_cgroup", maker.cgroup),)),
        f"zombies below {maker.place} that go on growing while {maker.root.name} is stopped",
    )  # fmt: skip
    rows = (
        row
        for row in units
        if maker.root.kind == "unit"
        and row.unit == maker.root.name
        and (row.cgroup is None or lies_in(maker.cgroup, row.cgroup))
    )
    unit = next(rows, None)
    return [source] if unit is None else [source, why_link(unit, units, at_ns)]
