"""What dying memory cgroups still hold, by the live parent they were removed from.

v1 counts for each cgroup what it has itself (`X`) and with all below it
(`total_X`): `total_X(P) − X(P) − Σ total_X(live child)` is held by dying children
of P. v2 has only sums: `X(P) − Σ X(live child)` is that where P has no processes
of its own, which v2 makes the rule. The sums lag by up to two seconds, and on
some kernels (4.15, 5.4, 5.10) counts batched per CPU hide small ones.

How many there are, v2 tells: a parent's `cgroup.stat` less its children's. v1 does
not; there the number of all is shared out, see `sharing`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nodescope.errors import SourceError
from nodescope.sources.memory_cgroups.counting import (
    dying_of,
    list_children,
    read_cgroup_stat,
    read_file,
)
from nodescope.sources.memory_cgroups.facts import read_possible_cpus
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy
from nodescope.sources.memory_cgroups.sharing import Candidate, bytes_each, share_out

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Kinds as they are called here and as memory.stat of v1 calls them.
_V1_NAMES = (b"cache", b"shmem", b"rss", b"swap")
_V2_NAMES = (b"file", b"shmem", b"anon", b"swap")
Amounts = tuple[int, int, int, int]  # of those names, in their order
_NOTHING: Amounts = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Parent:
    """A live cgroup of which removed children are still held."""

    path: str
    dying: int | None
    exact: bool  # whether the number was counted, not shared out
    held: Mapping[str, int] = field(default_factory=dict)  # kind → bytes; kinds do not overlap
    occupied: bool = False  # processes run in it, so that pages may be its own

    @property
    def held_bytes(self) -> int:
        """All kinds together."""
        return sum(self.held.values())


def read_parents(hierarchy: MemoryHierarchy, dying: int | None) -> list[Parent]:
    """Every parent of dying ones that can be told, most first; `dying` is the number of all."""
    if dying == 0:
        return []
    if hierarchy.is_v2:
        parents = list(_read_v2(hierarchy))
    else:
        parents = _read_v1(hierarchy, dying)
    return sorted(parents, key=lambda each: (-(each.dying or 0), -each.held_bytes, each.path))


# -- v1 --------------------------------------------------------------------


def _read_v1(hierarchy: MemoryHierarchy, dying: int | None) -> list[Parent]:
    children: dict[str, list[str]] = {}
    own: dict[str, Amounts] = {}
    total: dict[str, Amounts] = {}
    pending = [""]
    while pending:
        path = pending.pop()
        try:
            content = read_file(f"{hierarchy.mount}{path}/memory.stat")
        except SourceError:
            continue  # removed while we walked: normal
        own[path] = parse_amounts(content, _V1_NAMES)
        total[path] = parse_amounts(content, _V1_NAMES, b"total_")
        children[path] = _children(hierarchy.mount, path)
        pending.extend(children[path])
    found = []
    for path, below in children.items():
        of_children = [total.get(child, _NOTHING) for child in below]
        held = name_kinds(subtract(total[path], [own[path], *of_children]))
        if sum(held.values()) >= PAGE_BYTES:
            found.append((path, held, below))
    counts = _share(hierarchy, found, dying)
    return [
        Parent(path or "/", count, False, held, _is_occupied(hierarchy, path))
        for (path, held, _), count in zip(found, counts, strict=True)
    ]


def _children(mount: str, path: str) -> list[str]:
    try:
        if os.stat(mount + path).st_nlink == 2:  # as kernfs counts: no directory in it
            return []
    except OSError:
        return []
    return list_children(mount, path)


def _share(
    hierarchy: MemoryHierarchy,
    found: list[tuple[str, dict[str, int], list[str]]],
    dying: int | None,
) -> list[int] | list[None]:
    if dying is None:
        return [None] * len(found)
    each = bytes_each(read_possible_cpus(hierarchy.places))
    candidates = [
        Candidate(
            sum(held.values()) // PAGE_BYTES,
            _kernel_bytes(hierarchy, path, below, each - PAGE_BYTES),
        )
        for path, held, below in found
    ]
    return share_out(dying, candidates, each)


def _kernel_bytes(
    hierarchy: MemoryHierarchy, path: str, children: Iterable[str], each_live: int
) -> int | None:
    """Kernel memory that is charged to a cgroup itself, less what its live children took.

    None where it says nothing: the root is charged nothing, and processes in a
    cgroup use kernel memory of their own.
    """
    if not path or _is_occupied(hierarchy, path):
        return None
    amount = _usage(hierarchy, path)
    if not amount:  # before v5.9 nothing is charged for a memory cgroup itself
        return None
    for child in children:
        amount -= (_usage(hierarchy, child) or 0) + each_live
    return max(amount, 0)


def _usage(hierarchy: MemoryHierarchy, path: str) -> int | None:
    try:
        return int(read_file(f"{hierarchy.mount}{path}/memory.kmem.usage_in_bytes"))
    except (SourceError, ValueError):
        return None


def _is_occupied(hierarchy: MemoryHierarchy, path: str) -> bool:
    try:
        return bool(read_file(f"{hierarchy.mount}{path}/cgroup.procs"))
    except SourceError:
        return False


# -- v2 --------------------------------------------------------------------


def _read_v2(hierarchy: MemoryHierarchy) -> Iterable[Parent]:
    top = _dying_below(hierarchy, "")
    pending = [("", top)] if top else []
    while pending:
        path, below = pending.pop()
        children = [
            (child, _dying_below(hierarchy, child))
            for child in list_children(hierarchy.mount, path)
        ]
        pending.extend(each for each in children if each[1])
        count = below - sum(number for _, number in children)
        if count > 0:
            occupied = not path or _is_occupied(hierarchy, path)
            held = {} if occupied else _held_v2(hierarchy, path, [child for child, _ in children])
            yield Parent(path or "/", count, True, held, occupied)


def _dying_below(hierarchy: MemoryHierarchy, path: str) -> int:
    try:
        return dying_of(read_cgroup_stat(hierarchy.mount + path)) or 0
    except SourceError:
        return 0  # removed while we walked: normal


def _held_v2(hierarchy: MemoryHierarchy, path: str, children: list[str]) -> dict[str, int]:
    amounts = [_amounts_v2(hierarchy, each) for each in (path, *children)]
    return name_kinds(subtract(amounts[0], amounts[1:]))


def _amounts_v2(hierarchy: MemoryHierarchy, path: str) -> Amounts:
    directory = f"{hierarchy.mount}{path}"
    try:
        file, shmem, anon, _ = parse_amounts(read_file(f"{directory}/memory.stat"), _V2_NAMES)
    except SourceError:
        return _NOTHING  # vanished, or without the memory controller
    try:
        swap = int(read_file(f"{directory}/memory.swap.current"))
    except (SourceError, ValueError):
        swap = 0  # no swap on this kernel
    return file, shmem, anon, swap


# -- pure ------------------------------------------------------------------


def parse_amounts(content: bytes, names: tuple[bytes, ...], prefix: bytes = b"") -> Amounts:
    """Four amounts of `memory.stat`; 0 for a name this kernel does not have."""
    text = b"\n" + content
    values = []
    for name in names:
        key = b"\n" + prefix + name + b" "
        at = text.find(key)
        end = text.find(b"\n", at + len(key))
        values.append(int(text[at + len(key) : end if end >= 0 else None]) if at >= 0 else 0)
    return values[0], values[1], values[2], values[3]


def subtract(whole: Amounts, parts: Iterable[Amounts]) -> Amounts:
    """What is left of each amount; reads are not of one moment, so it may be below 0."""
    first, second, third, fourth = whole
    for part in parts:
        first -= part[0]
        second -= part[1]
        third -= part[2]
        fourth -= part[3]
    return first, second, third, fourth


def name_kinds(amounts: Amounts) -> dict[str, int]:
    """Amounts by kind, those above nothing; `file` is page cache without tmpfs and shmem."""
    cache, shmem, anon, swap = amounts
    kinds = {"shmem": shmem, "file": cache - max(shmem, 0), "anon": anon, "swap": swap}
    return {kind: amount for kind, amount in kinds.items() if amount > 0}
