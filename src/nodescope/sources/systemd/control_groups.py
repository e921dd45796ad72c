"""Where a systemd's own tree of cgroups stands in ours.

A systemd in another namespace calls its cgroups from its own root: its
`/system.slice/x.service` may be our `/machines/one/system.slice/x.service`.
Who listens at its bus is a process we can see, and the path of that process's
cgroup ends in one that systemd gave it: what comes before is the prefix.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nodescope.sources.cgroups.paths_by_id import find_default_hierarchy
from nodescope.sources.places import Places

_OWN = ("/init.scope", "/system.slice/")
_MAX_DEPTH = 4
_MAX_WALKED = 5000


def parse_cgroup_prefix(content: bytes) -> str | None:
    """The prefix, from `/proc/PID/cgroup` of systemd itself or of a service of it."""
    paths: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        number, controllers, path = [*line.split(":", 2), "", "", ""][:3]
        paths["" if number == "0" else controllers] = path
    for hierarchy in ("", "name=systemd"):
        path = paths.get(hierarchy, "")
        for own in _OWN:
            at = f"{path}/".find(own if own.endswith("/") else f"{own}/")
            if at >= 0:
                return path[:at]
    return None


def find_prefix(places: Places, peer_pid: int | None, groups: Iterable[str]) -> str | None:
    """Return the prefix of a unit's control group; None if its tree is not in ours."""
    if peer_pid is not None:
        try:
            prefix = parse_cgroup_prefix((Path("/proc") / str(peer_pid) / "cgroup").read_bytes())
        except OSError:
            prefix = None
        if prefix is not None and not prefix.startswith("/.."):
            return prefix
    root = _hierarchy(places)
    if root is None:
        return None
    wanted = [group for group in groups if group]
    best: tuple[int, str] | None = None
    for prefix in _candidates(root):
        found = sum(os.path.isdir(f"{root}{prefix}{group}") for group in wanted)
        if (found or not wanted) and (best is None or found > best[0]):
            best = (found, prefix)
    return None if best is None else best[1]


def _hierarchy(places: Places) -> Path | None:
    """The tree whose paths samples have; that of the mounted host, if one is given."""
    if places.root != Path("/"):
        for relative in ("sys/fs/cgroup/unified", "sys/fs/cgroup/systemd", "sys/fs/cgroup"):
            if (places.root / relative / "cgroup.procs").exists():
                return places.root / relative
        return None
    return find_default_hierarchy(places.proc)


def _candidates(root: Path) -> Iterable[str]:
    """Cgroups below which a systemd seems to live: they have an `init.scope`."""
    pending, walked = [("", 0)], 0
    while pending and walked < _MAX_WALKED:
        path, depth = pending.pop(0)
        walked += 1
        try:
            with os.scandir(f"{root}{path}") as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue  # removed while we walked
        if "init.scope" in names:
            yield path
        if depth < _MAX_DEPTH:
            pending += [(f"{path}/{name}", depth + 1) for name in names]
