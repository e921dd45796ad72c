"""Parents of dying memory cgroups on v1: what is held is counted, how many there are is shared out.

`total_X(P) − X(P) − Σ total_X(live child)` is held by dying children of P. Reads are not
of one moment: where live children change meanwhile, a parent is read again in the other
order, after them, and the lesser amount counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.errors import SourceError
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.apportioned import (
    Candidate,
    Share,
    bytes_each_live,
    share_out,
)
from nodescope.sources.memory_cgroups.counts import list_children
from nodescope.sources.memory_cgroups.facts import read_possible_cpus
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy
from nodescope.sources.memory_cgroups.parents import (
    NOTHING,
    PAGE_BYTES,
    Amounts,
    Evidence,
    Parent,
    is_occupied,
    name_kinds,
    parse_amounts,
    subtract,
)

_NAMES = (b"cache", b"shmem", b"rss", b"swap")
# Pages per possible CPU that two reads may differ by and nobody changed anything: a read
# brings sums up to date only when more is outstanding (MEMCG_CHARGE_BATCH), and each CPU
# tells what it has only in portions of as much.
_LAG_PAGES = 2 * 64


@dataclass(frozen=True, slots=True)
class _FoundParent:
    """A parent on v1: its path, empty for the root, what is held, and its live children."""

    path: str
    held: dict[str, int]
    children: list[str]
    occupied: bool
    certain: bool  # some of it is of a kind that nobody alive has: counters that lag are no reason

    @property
    def name(self) -> str:
        return self.path or "/"


def read_parents_v1(
    hierarchy: MemoryHierarchy, dying: int | None, heard: Mapping[str, int]
) -> list[Parent]:
    """Parents in no order; `dying` and `heard` as `residual.read_parents` has them."""
    found = _find(hierarchy, heard)
    if dying is None:
        return [Parent(each.name, None, False, each.held, each.occupied, "rest") for each in found]
    shares = _share(hierarchy, found, dying, heard)
    return [
        _parent(each, share)
        for each, share in zip(found, shares, strict=True)
        if share.count or share.agrees
    ]


def _parent(found: _FoundParent, share: Share) -> Parent:
    evidence: Evidence = "kernel_memory" if share.agrees else "rest"
    return Parent(
        found.name,
        share.count,
        False,
        found.held,
        found.occupied,
        evidence,
        share.least,
        share.most,
    )


def _find(hierarchy: MemoryHierarchy, heard: Mapping[str, int]) -> list[_FoundParent]:
    children: dict[str, list[str]] = {}
    own: dict[str, Amounts] = {}
    total: dict[str, Amounts] = {}
    pending = [""]
    while pending:
        path = pending.pop()
        try:
            own[path], total[path] = _amounts(hierarchy, path)
        except SourceError:
            continue  # removed while we walked: normal
        children[path] = _children(hierarchy.mount, path)
        pending.extend(children[path])
    found = []
    for path, below in children.items():
        of_children = [total.get(child, NOTHING) for child in below]
        held = name_kinds(subtract(total[path], [own[path], *of_children]))
        if held and below:
            held = _lesser(held, _held_again(hierarchy, path, below))
        if sum(held.values()) >= PAGE_BYTES or heard.get(path or "/"):
            living = {kind for each in (own[path], *of_children) for kind in name_kinds(each)}
            certain = bool(held.keys() - living)
            found.append(_FoundParent(path, held, below, is_occupied(hierarchy, path), certain))
    return found


def _amounts(hierarchy: MemoryHierarchy, path: str) -> tuple[Amounts, Amounts]:
    """Return the amounts of a cgroup itself, and with all below it."""
    content = read_file(f"{hierarchy.mount}{path}/memory.stat")
    return parse_amounts(content, _NAMES), parse_amounts(content, _NAMES, b"total_")


def _held_again(hierarchy: MemoryHierarchy, path: str, children: list[str]) -> dict[str, int]:
    """Return the amounts held below a parent that is read after its children."""
    parts = []
    for each in (*children, path):
        try:
            parts.append(_amounts(hierarchy, each))
        except SourceError:
            if each == path:
                return {}
    own, whole = parts.pop()
    return name_kinds(subtract(whole, [own, *(total for _, total in parts)]))


def _lesser(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {kind: min(amount, other[kind]) for kind, amount in one.items() if kind in other}


def _children(mount: str, path: str) -> list[str]:
    try:
        if os.stat(mount + path).st_nlink == 2:  # as kernfs counts: no directory in it
            return []
    except OSError:
        return []
    return list_children(mount, path)


def _share(
    hierarchy: MemoryHierarchy, found: list[_FoundParent], dying: int, heard: Mapping[str, int]
) -> list[Share]:
    possible_cpus = read_possible_cpus(hierarchy.places)
    lag = _LAG_PAGES * possible_cpus
    candidates = []
    for each in found:
        pages = sum(each.held.values()) // PAGE_BYTES
        candidates.append(
            Candidate(
                pages,
                _kernel_bytes(hierarchy, each, bytes_each_live(possible_cpus)),
                each.occupied,
                doubtful=pages <= lag and bool(each.children or each.occupied) and not each.certain,
                heard=heard.get(each.name, 0),
            )
        )
    return share_out(dying, candidates, possible_cpus)


def _kernel_bytes(hierarchy: MemoryHierarchy, found: _FoundParent, each_live: int) -> int | None:
    """Kernel memory that is charged to a cgroup itself, less what its live children took.

    None where it says nothing: the root is charged nothing.
    """
    amount = _usage(hierarchy, found.path) if found.path else None
    if not amount:  # before v5.9 nothing is charged for a memory cgroup itself
        return None
    for child in found.children:
        amount -= (_usage(hierarchy, child) or 0) + each_live
    return max(amount, 0)


def _usage(hierarchy: MemoryHierarchy, path: str) -> int | None:
    try:
        return int(read_file(f"{hierarchy.mount}{path}/memory.kmem.usage_in_bytes"))
    except (SourceError, ValueError):
        return None
