"""How many dying cgroups each parent has, where the kernel tells only how many there are.

An estimate for v1. What is known of a parent: each of its dying children holds at
least one page; each costs the parent kernel memory, a known amount at least (since
v5.9 a memory cgroup is charged to its parent); and the numbers of all parents make up
the number of all.

Kernel memory can mislead: what removed children had allocated in the kernel (dentries,
inodes) comes to the parent as well, and stays there when the dying ones are long gone.
Where it stands for more cgroups than there are pages or dying ones at all, it cannot
be theirs and tells nothing. So parents whose kernel memory agrees with their pages are
given theirs first, of them those whose children hold least (many that hold much each
would have filled the memory long ago); the others share what is left.

Bounds hold whatever the shares are: no parent has more than its kernel memory pays
for, and none fewer than were heard of or than the others cannot have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Charged to the parent for each: slab, and per possible CPU; and the page that its
# own small allocations were taken from. Measured on 6.18: 10,178 bytes on two CPUs
# for a live one, 14,262 for one that died with one file in memory, 14,295 on disk.
_SLAB_BYTES = 6_000
_PER_CPU_BYTES = 2_090
_PAGE_BYTES = 4_096
# What one costs differs a little, by what else its processes left in the kernel.
_AGREES = 1.05


@dataclass(frozen=True, slots=True)
class Candidate:
    """A parent: pages that dying children hold, and kernel memory charged for them, if known.

    `occupied`: processes in the parent use kernel memory, too, so that it only says how
    many there are at most. `doubtful`: its pages are so few that counters which lag
    explain them. `heard`: so many were heard being removed and not released.
    """

    pages: int
    kernel_bytes: int | None
    occupied: bool = False
    doubtful: bool = False
    heard: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """How many, at least and at most, and whether kernel memory agrees with the pages held."""

    count: int
    least: int
    most: int
    agrees: bool


def bytes_each(possible_cpus: int) -> int:
    """Return the memory that one dying cgroup costs its parent."""
    return bytes_each_live(possible_cpus) + _PAGE_BYTES


def bytes_each_live(possible_cpus: int) -> int:
    """Return the memory of one live cgroup: the least that any dying one costs."""
    return _SLAB_BYTES + _PER_CPU_BYTES * possible_cpus


def share_out(total: int, candidates: Sequence[Candidate], possible_cpus: int) -> list[Share]:
    """Shares in the order of the candidates; never more in all than `total`."""
    each_bytes = bytes_each(possible_cpus)
    weighed = [_weigh(each, total, each_bytes) for each in candidates]
    order = sorted(range(len(candidates)), key=lambda at: weighed[at].rank)
    counts = [0] * len(candidates)
    left = total
    for at in order:  # first what is certain, then one for each that holds anything
        counts[at] = min(left, candidates[at].heard)
        left -= counts[at]
    for at in order:
        if not counts[at] and not candidates[at].doubtful:
            counts[at] = min(left, 1)
            left -= counts[at]
    for limits in ([each.likely for each in weighed], [each.pages for each in candidates]):
        for at in order:  # the second time: they cost less than was thought
            more = max(0, min(left, limits[at] - counts[at]))
            counts[at] += more
            left -= more
    most = [
        max(count, _most(each, total, bytes_each_live(possible_cpus)))
        for count, each in zip(counts, candidates, strict=True)
    ]
    return [
        Share(
            count,
            min(count, max(candidate.heard, int(weight.agrees), total - (sum(most) - limit))),
            limit,
            weight.agrees,
        )
        for candidate, count, limit, weight in zip(candidates, counts, most, weighed, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Weight:
    likely: int
    agrees: bool
    rank: tuple[float, ...]  # the lowest is served first


def _weigh(candidate: Candidate, total: int, each_bytes: int) -> _Weight:
    """How many are likely, and how well what is known of a parent agrees."""
    possible = max(min(candidate.pages, total), 1)
    if candidate.kernel_bytes is None or candidate.occupied:
        # Where nothing but pages is known, those with few are more likely to be many.
        return _Weight(possible, False, (candidate.doubtful, 1, 0, 0, candidate.pages))
    paid_for = round(candidate.kernel_bytes / each_bytes)
    likely = max(min(possible, paid_for), 1)
    excess = paid_for / possible
    agrees = paid_for >= 1 and excess <= _AGREES
    doubtful = candidate.doubtful and not agrees
    rank = (doubtful, 0, 1 if agrees else max(excess, 1), candidate.pages / likely, -likely)
    return _Weight(likely, agrees, rank)


def _most(candidate: Candidate, total: int, each_bytes: int) -> int:
    """Pages do not limit it: one that was removed with children in it needs none of its own."""
    if candidate.kernel_bytes is None:
        return total
    return min(total, max(candidate.kernel_bytes // each_bytes, 1))
