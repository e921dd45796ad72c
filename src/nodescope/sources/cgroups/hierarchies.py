"""Where cgroups live: the hierarchies that are mounted, and the directories in them.

A node has one v2 hierarchy, several v1 hierarchies, or (hybrid) both. In a
container the host's may be mounted a second time below the host's root; those
come first, as the container's own show only itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import SourceAbsent
from nodescope.sources.kernel_files import read_file
from nodescope.sources.places import Places

_V1_CONTROLLERS = frozenset(
    ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "net_cls",
     "net_prio", "perf_event", "hugetlb", "rdma", "misc")
)  # fmt: skip
LEAF_LINKS = 2  # a directory of kernfs has two links and one per directory in it
UNIFIED = "unified"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy; `name` is as `/proc/PID/cgroup` has it, `unified` for v2."""

    name: str
    mount: Path
    controllers: frozenset[str]

    @property
    def version(self) -> int:
        return 2 if self.name == UNIFIED else 1


def read_hierarchies(places: Places) -> list[Hierarchy]:
    """All hierarchies, each once."""
    path = places.proc / "self/mounts"
    found = parse_mounts(read_file(path))
    placed = [_place(each, places.root) for each in found]
    chosen: dict[str, Hierarchy] = {}
    for each in sorted(placed, key=lambda each: not each.mount.is_relative_to(places.root)):
        if each.name not in chosen and each.mount.is_dir():
            chosen[each.name] = each
    if not chosen:
        raise SourceAbsent(path, "no cgroup hierarchy is mounted")
    return [_with_controllers(each) for each in chosen.values()]


def parse_mounts(content: bytes) -> list[Hierarchy]:
    """The cgroup hierarchies among mounts, where the mount table says they are."""
    found = []
    for line in content.decode("utf-8", "surrogateescape").splitlines():
        fields = line.split()
        if len(fields) < 4 or fields[2] not in ("cgroup", "cgroup2"):
            continue
        mount = Path(_unescape(fields[1]))
        if fields[2] == "cgroup2":
            found.append(Hierarchy(UNIFIED, mount, frozenset()))
            continue
        options = fields[3].split(",")
        controllers = [option for option in options if option in _V1_CONTROLLERS]
        named = [option for option in options if option.startswith("name=")]
        name = ",".join(controllers) or (named[0] if named else "")
        if name:
            found.append(Hierarchy(name, mount, frozenset(controllers)))
    return found


def _unescape(path: str) -> str:
    """The mount table writes blank, tab, newline and backslash in octal."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


def _place(hierarchy: Hierarchy, root: Path) -> Hierarchy:
    """A recorded tree's mounts lie below its root; a host's that is mounted here already do."""
    if root == Path("/") or hierarchy.mount.is_relative_to(root):
        return hierarchy
    below = root / hierarchy.mount.relative_to("/")
    mount = below if below.is_dir() else hierarchy.mount
    return Hierarchy(hierarchy.name, mount, hierarchy.controllers)


def _with_controllers(hierarchy: Hierarchy) -> Hierarchy:
    if hierarchy.version == 1:
        return hierarchy
    try:
        controllers = (hierarchy.mount / "cgroup.controllers").read_text("ascii").split()
    except (OSError, UnicodeDecodeError):
        controllers = []
    return Hierarchy(hierarchy.name, hierarchy.mount, frozenset(controllers))


def walk(mount: Path | str) -> Iterator[tuple[str, int]]:
    """Every cgroup below `mount` with the inode of its directory, parents first.

    Listing a directory means listing its dozens of files, so one without
    directories in it, as the number of its links tells, is not listed.
    """
    root = str(mount).rstrip("/")
    pending = [""]
    while pending:
        path = pending.pop()
        try:
            status = os.stat(root + path)
            yield path or "/", status.st_ino
            if status.st_nlink == LEAF_LINKS:
                continue
            with os.scandir(root + path) as entries:
                pending.extend(
                    f"{path}/{entry.name}"
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                )
        except OSError:
            continue  # removed while we walked: normal
