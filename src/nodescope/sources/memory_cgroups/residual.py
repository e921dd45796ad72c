"""Memory still charged to dying memory cgroups, by the live parent they were removed from.

v1 counts for each cgroup what it has itself (`X`) and with all below it
(`total_X`): `total_X(P) − X(P) − Σ total_X(live child)` is held by dying children
of P. v2 has only sums: `X(P) − Σ X(live child)` is that where P has no processes
of its own, which v2 makes the rule. The sums lag by up to two seconds, and on
some kernels (4.15, 5.4, 5.10) counts batched per CPU hide small ones.

How many there are, v2 tells: a parent's `cgroup.stat` less its children's. v1 does
not; there the number of all is shared out, see `sharing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodescope.errors import SourceError
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.counts import dying_of, list_children, read_cgroup_stat
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy
from nodescope.sources.memory_cgroups.parents import (
    NOTHING,
    Amounts,
    Parent,
    is_occupied,
    name_kinds,
    parse_amounts,
    subtract,
)
from nodescope.sources.memory_cgroups.residual_v1 import read_parents_v1

_V2_NAMES = (b"file", b"shmem", b"anon", b"swap")


def read_parents(
    hierarchy: MemoryHierarchy, dying: int | None, heard: Mapping[str, int] | None = None
) -> list[Parent]:
    """Every parent of dying ones that can be told, most first; `dying` is the number of all.

    `heard` are numbers by parent of those that were heard being removed and are still held.
    """
    if dying == 0:
        return []
    if hierarchy.is_v2:
        parents = list(_read_v2(hierarchy))
    else:
        parents = read_parents_v1(hierarchy, dying, heard or {})
    return sorted(parents, key=lambda each: (-(each.dying or 0), -each.held_bytes, each.path))


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
            occupied = not path or is_occupied(hierarchy, path)
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
        return NOTHING  # vanished, or without the memory controller
    try:
        swap = int(read_file(f"{directory}/memory.swap.current"))
    except (SourceError, ValueError):
        swap = 0  # no swap on this kernel
    return file, shmem, anon, swap
