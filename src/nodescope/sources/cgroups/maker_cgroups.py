"""The cgroup that a maker of cgroups is in itself, also of makers that have ended.

With each hit the kernel gives the id of the maker's cgroup in the unified hierarchy
(`PERF_SAMPLE_CGROUP`, v5.7): that is certain, however short it lived. Before v5.7, and where
services live in v1 hierarchies alone, that says nothing; then `/proc/PID/cgroup` of the maker
is read, or of the nearest process above it that is still there: a script outlives the
`mkdir` that it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from nodescope.sources.cgroups.of_process import read_cgroup_of
from nodescope.sources.cgroups.paths_by_id import CgroupPaths

_MAX_KNOWN = 4096
_MOST_ABOVE = 4  # a shell, what started it, and their like
_MOST_READ = 256  # processes of one batch: in a flood of them the rest is not known
_ROOT = "/"


class MakerCgroups:
    """Cgroups of processes as of the last record that was taken."""

    def __init__(self, proc: Path, paths: CgroupPaths) -> None:
        self._proc = proc
        self._paths = paths
        self._parents: dict[int, int] = {}
        self._found: dict[int, str | None] = {}

    def learn(self, identity: int, path: str) -> None:
        """Take in a cgroup of the unified hierarchy that was just made."""
        self._paths.learn(identity, path)

    def is_born(self, pid: int, parent_pid: int) -> None:
        """From now on that number is a new process."""
        self._found.pop(pid, None)
        self._parents.pop(pid, None)
        self._parents[pid] = parent_pid
        self._bound()

    def learn_parents(self, parents: Mapping[int, int]) -> None:
        """Take in the parents of many new processes."""
        for pid in parents.keys() & self._parents.keys():
            del self._parents[pid]
        self._parents.update(parents)
        self._bound()

    def _bound(self) -> None:
        for pid in list(islice(self._parents, max(0, len(self._parents) - _MAX_KNOWN))):
            del self._parents[pid]

    def forget_found(self) -> None:
        """Forget what was read of processes: they may move, end, and pass on their number."""
        self._found.clear()

    def find(self, pid: int, identity: int) -> str | None:
        """Return the maker's cgroup, by the id that its hit carries (0: none); None: not known."""
        told = self._paths.path(identity)
        if told is not None and told != _ROOT:
            return told
        if pid not in self._found:
            if len(self._found) >= _MOST_READ:
                return told
            self._found[pid] = self._read(pid)
        return self._found[pid] or told

    def _read(self, pid: int) -> str | None:
        for _ in range(_MOST_ABOVE):
            cgroup = read_cgroup_of(self._proc, pid)
            if cgroup is not None:
                return cgroup
            if (above := self._parents.get(pid)) is None:
                return None
            pid = above
        return None
