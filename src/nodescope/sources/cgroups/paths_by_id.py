"""Cgroup ids, as perf samples carry them, to paths.

`PERF_SAMPLE_CGROUP` gives the id of the task's cgroup in the default (v2)
hierarchy, which is the inode number of its directory. On hybrid hosts that is
the tree under `/sys/fs/cgroup/unified`, which systemd keeps in step with v1.
New cgroups announce themselves by perf records; older ones are found by a scan.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

_MAX_SCANNED = 100_000
_MAX_KNOWN = 200_000
_RESCAN_S = 10.0


def find_default_hierarchy(proc: Path = Path("/proc")) -> Path | None:
    """Where cgroup2 is mounted, as `/proc/self/mounts` tells."""
    try:
        lines = (proc / "self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if len(fields) > 2 and fields[2] == "cgroup2":
            return Path(fields[1].encode().decode("unicode_escape"))
    return None


class CgroupPaths:
    """Remembers the paths of cgroups, also after they are gone."""

    def __init__(self, root: Path | None, clock: Callable[[], float] = monotonic) -> None:
        self._root = root
        self._clock = clock
        self._scanned_at = float("-inf")
        self._paths: dict[int, str] = {}

    def learn(self, identifier: int, path: str) -> None:
        """Take in what a perf record announced."""
        if len(self._paths) >= _MAX_KNOWN:
            self._paths.clear()
        self._paths[identifier] = path or "/"

    def path(self, identifier: int) -> str | None:
        """The path of a cgroup below the hierarchy's root; None if it is not known."""
        if identifier == 0:
            return None
        known = self._paths.get(identifier)
        if known is None and self._clock() - self._scanned_at >= _RESCAN_S:
            self._scanned_at = self._clock()
            self._scan()
            known = self._paths.get(identifier)
        return known

    def _scan(self) -> None:
        if self._root is None:
            return
        for count, (path, inode) in enumerate(_walk(self._root)):
            if count >= _MAX_SCANNED:
                break
            self.learn(inode, path)


def _walk(root: Path) -> Iterator[tuple[str, int]]:
    """Every directory below `root` with its inode, parents first."""
    try:
        yield "/", root.stat().st_ino
    except OSError:
        return
    pending = [""]
    while pending:
        parent = pending.pop()
        try:
            with os.scandir(f"{root}{parent}") as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        path = f"{parent}/{entry.name}"
                        yield path, entry.inode()
                        pending.append(path)
        except OSError:
            continue  # removed while we walked: normal
