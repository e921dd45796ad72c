"""A live cgroup whose removed children are still held, and the amounts that memory.stat tells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodescope.errors import SourceError
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
Amounts = tuple[int, int, int, int]  # page cache, shmem, anonymous, swap
NOTHING: Amounts = (0, 0, 0, 0)
Evidence = Literal["counted", "kernel_memory", "rest"]


@dataclass(frozen=True, slots=True)
class Parent:
    """A live cgroup of which removed children are still held."""

    path: str
    dying: int | None
    exact: bool  # whether the number was counted, not shared out
    held: Mapping[str, int] = field(default_factory=dict)  # kind → bytes; kinds do not overlap
    occupied: bool = False  # processes run in it, so that pages may be its own
    # By what the number is known: the kernel counts, kernel memory agrees with what is
    # held, or it is this parent's part of what the others cannot have; None: not recorded.
    evidence: Evidence | None = "counted"
    least: int | None = None  # bounds of an estimate that hold whatever the shares are
    most: int | None = None
    read_ns: int | None = None  # wall time it was last recorded at; None: just now

    @property
    def held_bytes(self) -> int:
        """All kinds together."""
        return sum(self.held.values())


def is_occupied(hierarchy: MemoryHierarchy, path: str) -> bool:
    """Return whether processes run in the cgroup itself."""
    try:
        return bool(read_file(f"{hierarchy.mount}{path}/cgroup.procs"))
    except SourceError:
        return False


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
    """Subtract each amount; reads are not of one moment, so a result may be below 0."""
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
