"""How many memory cgroups there are: tracked by the kernel, visible as directories, dying.

v1 (and hybrid): `/proc/cgroups` counts all of the hierarchy, removed ones
included; dying are those without a directory. Its rows are of the whole node
whoever asks, so where only a part of the hierarchy is mounted, nothing can be
said. v2: `cgroup.stat` tells both, `nr_subsys_memory` and `nr_dying_subsys_memory`
since v6.12, before that only of cgroups with whichever controllers; `/proc/cgroups`
may have no row of memory at all there (seen on 6.18 built without MEMCG_V1).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from nodescope.errors import MalformedSource, SourceAbsent, source_error
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy, Version

_LEAF_LINKS = 2  # a directory of kernfs has two links, and one per directory in it


@dataclass(frozen=True, slots=True)
class Count:
    """How many; None where it cannot be known from here."""

    version: Version
    tracked: int | None
    visible: int
    dying: int | None


class Counting:
    """Counts again and again; what did not change is not listed again."""

    def __init__(self, hierarchy: MemoryHierarchy) -> None:
        self._hierarchy = hierarchy
        self._directories = Directories(hierarchy.mount)

    def read(self) -> Count:
        """Count now."""
        if self._hierarchy.is_v2:
            return _count_v2(self._hierarchy)
        before = read_tracked(self._hierarchy)
        visible = self._directories.count()
        after = read_tracked(self._hierarchy)
        if not self._hierarchy.whole:
            return Count(self._hierarchy.version, after, visible, None)
        # One that was made or released meanwhile must not look like a dying one.
        tracked = max(visible, min(before, after))
        return Count(self._hierarchy.version, tracked, visible, tracked - visible)


def _count_v2(hierarchy: MemoryHierarchy) -> Count:
    facts = read_cgroup_stat(hierarchy.mount)
    visible, dying = visible_of(facts), dying_of(facts)
    tracked = None if dying is None else visible + dying
    return Count(hierarchy.version, tracked, visible, dying)


def visible_of(facts: Mapping[bytes, int]) -> int:
    """Cgroups with a directory at and below the one `cgroup.stat` is of."""
    return facts.get(b"nr_subsys_memory", facts.get(b"nr_descendants", 0) + 1)


def dying_of(facts: Mapping[bytes, int]) -> int | None:
    """Dying ones below; None on kernels before v4.14, which do not tell."""
    return facts.get(b"nr_dying_subsys_memory", facts.get(b"nr_dying_descendants"))


def read_tracked(hierarchy: MemoryHierarchy) -> int:
    """The memory row of `/proc/cgroups`."""
    path = f"{hierarchy.places.proc}/cgroups"
    tracked = parse_tracked(read_file(path), path)
    if tracked is None:
        raise SourceAbsent(path, "the memory controller is not on, or has no row")
    return tracked


def parse_tracked(content: bytes, path: str = "cgroups") -> int | None:
    """`memory	4	60	1`: name, hierarchy, cgroups, whether it is on."""
    for number, line in enumerate(content.splitlines(), 1):
        if line.startswith(b"memory\t"):
            fields = line.split()
            try:
                return int(fields[2]) if fields[3] != b"0" else None
            except (IndexError, ValueError) as error:
                raise MalformedSource(path, f"not four fields: {line!r}", number) from error
    return None


def read_cgroup_stat(directory: str) -> dict[bytes, int]:
    """`cgroup.stat` of a cgroup of v2."""
    path = f"{directory}/cgroup.stat"
    return parse_cgroup_stat(read_file(path), path)


def parse_cgroup_stat(content: bytes, path: str = "cgroup.stat") -> dict[bytes, int]:
    """A name and a number per line."""
    facts = {}
    for number, line in enumerate(content.splitlines(), 1):
        name, _, value = line.partition(b" ")
        try:
            facts[name] = int(value)
        except ValueError as error:
            raise MalformedSource(path, f"not a number: {line!r}", number) from error
    return facts


class Directories:
    """The directories below a mount, counted by looking at each and listing few.

    Listing a cgroup means listing its dozens of files. The links of a directory
    tell how many directories are in it: it is listed when that number changed, or
    when one that was in it is gone.
    """

    def __init__(self, mount: str) -> None:
        self._mount = mount
        self._listed: dict[str, tuple[int, list[str]]] = {}

    def count(self) -> int:
        """How many there are, the mount's own included."""
        count, stale = self._walk(frozenset())
        if stale:
            count, _ = self._walk(frozenset(stale))
        return count

    def _walk(self, stale: frozenset[str]) -> tuple[int, list[str]]:
        listed: dict[str, tuple[int, list[str]]] = {}
        vanished: list[str] = []
        count, pending = 0, [""]
        while pending:
            path = pending.pop()
            try:
                links = os.stat(self._mount + path).st_nlink
            except OSError as error:
                if not path:
                    raise source_error(self._mount, error) from error
                vanished.append(path.rpartition("/")[0])
                continue
            count += 1
            if links == _LEAF_LINKS:
                continue
            known = self._listed.get(path)
            # A file system that does not count links says 1 always.
            if known is None or known[0] != links or links < _LEAF_LINKS or path in stale:
                known = (links, list_children(self._mount, path))
            listed[path] = known
            pending.extend(known[1])
        self._listed = listed
        return count, vanished


def list_children(mount: str, path: str) -> list[str]:
    """The paths of the cgroups in a cgroup; none if it vanished. The root's path is empty."""
    try:
        with os.scandir(mount + path) as entries:
            return [
                f"{path}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
