"""One look at everything: counts, parents, the cost of a walk. Writes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.errors import SourceError
from nodescope.quantities import SECOND_NS
from nodescope.sources.memory_cgroups.counts import Count, Counting
from nodescope.sources.memory_cgroups.facts import (
    read_memory_bytes,
    read_possible_cpus,
    read_uptime_ns,
)
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy
from nodescope.sources.memory_cgroups.parents import Parent
from nodescope.sources.memory_cgroups.residual import read_parents
from nodescope.sources.memory_cgroups.walk import Walk, probe_walk


@dataclass(frozen=True, slots=True)
class Look:
    """One look; `counts` are two readings a moment apart, the latest second."""

    hierarchy: MemoryHierarchy
    times_ns: tuple[int, int]
    counts: tuple[Count, Count]
    parents: list[Parent]
    walk: Walk | None
    reclaim_file: str | None  # by which a parent can be told to reclaim, on this kernel
    possible_cpus: int
    memory_bytes: int | None
    uptime_ns: int | None

    @property
    def count(self) -> Count:
        """The latest."""
        return self.counts[1]


def take_look(
    hierarchy: MemoryHierarchy,
    *,
    apart_s: float = 0.05,
    earlier: tuple[int, Count] | None = None,
    heard: Mapping[str, int] | None = None,
) -> Look:
    """Look now, twice unless there was an `earlier` count; `heard` as `read_parents` has it."""
    places = hierarchy.places
    counting = Counting(hierarchy)
    first_ns, first = earlier or (time.monotonic_ns(), counting.read())
    dying = (counting.read() if earlier else first).dying
    parents = read_parents(hierarchy, dying, heard)
    try:
        walk = probe_walk(hierarchy)
    except SourceError:
        walk = None
    time.sleep(max(0.0, apart_s - (time.monotonic_ns() - first_ns) / SECOND_NS))
    return Look(
        hierarchy,
        (first_ns, time.monotonic_ns()),
        (first, counting.read()),
        parents,
        walk,
        _reclaim_file(hierarchy, parents),
        read_possible_cpus(places),
        read_memory_bytes(places),
        read_uptime_ns(places),
    )


def _reclaim_file(hierarchy: MemoryHierarchy, parents: list[Parent]) -> str | None:
    name = "memory.reclaim" if hierarchy.is_v2 else "memory.force_empty"  # v6.1; always
    for parent in parents:
        if parent.path != "/" and os.path.exists(f"{hierarchy.directory(parent.path)}/{name}"):
            return name
    return None
