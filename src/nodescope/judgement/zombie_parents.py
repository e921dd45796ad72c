"""Under which parents zombies lie: what was read of each, and who makes cgroups there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodescope.judgement.cgroup_churn import Churn
from nodescope.sources.memory_cgroups.parents import Parent


@dataclass(frozen=True, slots=True)
class ZombieParent:
    """A parent of cgroups that were removed and stay."""

    path: str
    dying: int | None
    held_bytes: int
    kinds: tuple[str, ...]  # of memory that they hold
    churned: tuple[Churn, ...]  # right below it, what leaves most behind first
    exact: bool = False  # whether the number was counted, not estimated
    share: float = 0.0  # of the zombies of all parents in the same reading
    read_ns: int | None = None  # wall time of that reading; None: just now

    def describe_count(self) -> str:
        """Return how many zombies lie there, marked as an estimate if it is one."""
        return f"{'' if self.exact else '≈'}{self.dying or 0:,}"

    @property
    def removed(self) -> int:
        return sum(each.removed for each in self.churned)

    @property
    def stayed(self) -> int:
        return sum(each.stayed for each in self.churned)

    @property
    def unreleased(self) -> int:
        return sum(each.unreleased or 0 for each in self.churned)


def find_zombie_parents(parents: Iterable[Parent], churned: Sequence[Churn]) -> list[ZombieParent]:
    """Return the parents with zombies, by either witness; those with most first."""
    read = {each.path: each for each in parents}
    all_dying = sum(each.dying or 0 for each in read.values())
    read_ns = max(
        (each.read_ns for each in read.values() if each.read_ns is not None), default=None
    )
    found = []
    for path in read.keys() | {each.parent for each in churned}:
        here = tuple(each for each in churned if each.parent == path)
        known = read.get(path) or Parent(path, None, exact=False)
        share = (known.dying or 0) / max(1, all_dying)
        parent = ZombieParent(
            path,
            known.dying,
            known.held_bytes,
            tuple(known.held),
            here,
            known.exact,
            share,
            read_ns,
        )
        if parent.dying or parent.held_bytes or parent.unreleased:
            found.append(parent)
    return sorted(found, key=lambda p: (-(p.dying or 0), -p.unreleased, -p.held_bytes, p.path))
