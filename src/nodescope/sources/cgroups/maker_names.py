"""Names of processes at a given time, also of processes that have ended.

A tracepoint's record tells a process by its number. By the time it is read, a maker
such as runc has ended, so names are taken from what perf records of every exec.
On a node that starts hundreds of programs a second nearly all of that is for
nothing: it is kept as it came, and read only when a cgroup was made or removed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path

from nodescope.sources.cgroups.announced import Announced, parse_announced

_MAX_KEPT_BYTES = 1 << 20
_MAX_NAMES = 4096


class RenamedProcesses:
    """Names by process, as of the last name that was taken."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._names: dict[int, str | bytes] = {}  # bytes: as it was announced

    def keep(self, drained: bytes) -> None:
        """Keep the renames and births that a ring held."""
        self._kept.append(drained)
        self._kept_bytes += len(drained)
        while self._kept_bytes > _MAX_KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft())
            self._names.clear()  # numbers are used again: what was known may be another's name

    def take_kept(self, wanted: Collection[int], until_ns: int) -> Announced:
        """Return what is kept; give each record to `rename` when its time has come.

        The names of all others are for `learn`, once what is wanted has been named.
        """
        drained = list(self._kept)
        self._kept.clear()
        self._kept_bytes = 0
        return parse_announced(drained, wanted, until_ns) if drained else Announced()

    def learn(self, names: Mapping[int, bytes]) -> None:
        """Take in the names of many processes."""
        for pid in names.keys() & self._names.keys():
            del self._names[pid]
        self._names.update(names)
        self._bound()

    def _bound(self) -> None:
        for pid in list(islice(self._names, max(0, len(self._names) - _MAX_NAMES))):
            del self._names[pid]

    def rename(self, pid: int, name: str) -> None:
        """From now on it is called so."""
        self._names.pop(pid, None)
        self._names[pid] = name
        self._bound()

    def name(self, pid: int) -> str | None:
        """Return the announced name, else the present one; None if the process has ended."""
        if pid not in self._names:
            try:
                comm = (self._proc / str(pid) / "comm").read_bytes()
            except OSError:
                return None
            self.rename(pid, comm.decode("utf-8", "replace").rstrip("\n"))
        name = self._names[pid]
        return name if isinstance(name, str) else name.decode("utf-8", "replace")
