"""Which hierarchy the memory controller is on, and where it is mounted whole.

v1: a `cgroup` mount with the option `memory`; hybrid: the same beside a cgroup2
mount, whose `cgroup.stat` then knows nothing of memory; v2: a cgroup2 mount with
`memory` among its controllers. In a container the own mount often shows only the
container's part, while the host's stands somewhere below `/host`: a mount that
begins at the root of the hierarchy is preferred, wherever it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nodescope.errors import SourceAbsent, SourceError
from nodescope.sources.cgroups.hierarchies import Hierarchy, parse_mounts
from nodescope.sources.kernel_files import read_file
from nodescope.sources.places import Places

Version = Literal["v1", "v2", "hybrid"]
# Files that only the root of a hierarchy has (v1), and that it has not (v2).
_ONLY_V1_ROOT = "cgroup.sane_behavior"
_NEVER_V2_ROOT = "cgroup.events"


@dataclass(frozen=True, slots=True)
class MemoryHierarchy:
    """Where memory cgroups are; `whole` if the mount begins at the hierarchy's root."""

    version: Version
    mount: str  # without a slash at its end
    places: Places
    whole: bool = True

    @property
    def is_v2(self) -> bool:
        """Return whether its files are those of cgroup v2."""
        return self.version == "v2"

    def directory(self, path: str) -> str:
        """The directory of a cgroup, by its path from the root."""
        return self.mount if path == "/" else self.mount + path


def find_memory_hierarchy(places: Places) -> MemoryHierarchy:
    """The memory controller's hierarchy; `SourceAbsent` where there is none."""
    mounted = list(_mounts(places))
    legacy = [each for each in mounted if "memory" in each.controllers]
    unified = [each for each in mounted if each.version == 2]
    if legacy:
        version: Version = "hybrid" if unified else "v1"
        chosen = next((each for each in legacy if _is_root(each)), legacy[0])
        return MemoryHierarchy(version, str(chosen.mount), places, _is_root(chosen))
    with_memory = [each for each in unified if _controls_memory(each.mount)]
    if with_memory:
        chosen = next((each for each in with_memory if _is_root(each)), with_memory[0])
        return MemoryHierarchy("v2", str(chosen.mount), places, _is_root(chosen))
    raise SourceAbsent(
        places.proc / "self/mounts",
        "no cgroup hierarchy with the memory controller is mounted",
        hint="mount the host's /sys/fs/cgroup into the container, "
        "or boot without cgroup_disable=memory",
    )


def _mounts(places: Places) -> Iterator[Hierarchy]:
    """Cgroup mounts that can be reached from here, where they are for us."""
    slash = places.root == Path("/")
    # Of a host mounted elsewhere, its first process knows where things are on it.
    own = places.proc / "self/mounts"
    for table in (own,) if slash else (places.proc / "1/mounts", own):
        for each in _parse(table, required=table == own):
            inside = slash or each.mount.is_relative_to(places.root)
            mount = each.mount if inside else places.inside(str(each.mount))
            if mount.is_dir():
                yield Hierarchy(each.name, mount, each.controllers)
    if not slash:  # the host's hierarchies may be seen by our own mounts only
        for each in _parse(Path("/proc/self/mounts"), required=False):
            if each.mount.is_relative_to(places.root):
                yield each


def _parse(table: Path, *, required: bool) -> list[Hierarchy]:
    try:
        return parse_mounts(read_file(table))
    except SourceError:
        if required:
            raise
        return []


def _is_root(hierarchy: Hierarchy) -> bool:
    if hierarchy.version == 1:
        return os.path.exists(f"{hierarchy.mount}/{_ONLY_V1_ROOT}")
    return not os.path.exists(f"{hierarchy.mount}/{_NEVER_V2_ROOT}")


def _controls_memory(mount: Path) -> bool:
    try:
        return b"memory" in (mount / "cgroup.controllers").read_bytes().split()
    except OSError:
        return False
