"""How many dying cgroups each parent has, where the kernel tells only how many there are.

An estimate for v1. Three things are known of a parent: each of its dying children
holds at least one page; each costs the parent kernel memory, a known amount at
least (since v5.9 a memory cgroup is charged to its parent), and what
its children allocated in the kernel comes to it when they are removed; and the
numbers of all parents make up the number of all. Many dying cgroups under one
parent hold little each, else memory would have run out long ago: parents whose
children hold least are given theirs first, and the others what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Charged to the parent for each: slab, and per possible CPU; and the page that its
# own small allocations were taken from. Measured on 6.18: 10,178 bytes on two CPUs
# for a live one, 14,260 for one that died with one file.
_SLAB_BYTES = 6_000
_PER_CPU_BYTES = 2_090
_PAGE_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Candidate:
    """A parent: pages that dying children hold, and kernel memory charged for them, if known."""

    pages: int
    kernel_bytes: int | None


def bytes_each(possible_cpus: int) -> int:
    """What one dying cgroup costs its parent."""
    return _SLAB_BYTES + _PER_CPU_BYTES * possible_cpus + _PAGE_BYTES


def share_out(total: int, candidates: Sequence[Candidate], each_bytes: int) -> list[int]:
    """Numbers of dying children, in the order of the candidates; never more in all than `total`."""
    likely = [_likely(each, each_bytes) for each in candidates]
    order = sorted(
        range(len(candidates)),
        key=lambda at: (
            candidates[at].kernel_bytes is None,
            candidates[at].pages / likely[at],
            # Where nothing but pages is known, those with few are more likely to be many.
            likely[at] if candidates[at].kernel_bytes is None else -likely[at],
        ),
    )
    counts = [0] * len(candidates)
    left = total
    for done, at in enumerate(order, 1):
        spare = left - (len(order) - done)  # each of the others has at least one
        counts[at] = max(min(likely[at], spare), min(left, 1))
        left -= counts[at]
    for at in order:  # they cost less than was thought
        more = min(left, candidates[at].pages - counts[at])
        counts[at] += more
        left -= more
    return counts


def _likely(candidate: Candidate, each_bytes: int) -> int:
    """How many there are if each costs as much as usual and holds one page or more."""
    if candidate.kernel_bytes is None:
        return max(candidate.pages, 1)
    return max(min(candidate.pages, round(candidate.kernel_bytes / each_bytes)), 1)
