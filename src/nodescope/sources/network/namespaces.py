"""Network namespaces other than ours, each by one process that lives in it.

Tables of the network (`/proc/PID/net`) are read through such a process.
"""

from __future__ import annotations

import os
from pathlib import Path

_MOST_NEW = 2000  # processes that are looked at in one round
_MOST = 256


class NetworkNamespaces:
    """Remembers the namespace of each process: it hardly ever changes."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._by_pid: dict[int, str | None] = {}
        self._refused: dict[int, OSError] = {}

    @property
    def refused(self) -> OSError | None:
        """Why the namespaces of most processes could not be read; None if they could."""
        if 2 * len(self._refused) <= len(self._by_pid):
            return None  # a few are closed even to root
        return next(iter(self._refused.values()))

    def find(self) -> dict[str, int]:
        """Return a process of each namespace that is not ours; the oldest that there is."""
        try:
            own = os.readlink(self._proc / "self/ns/net")
            pids = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        except OSError:
            return {}
        for pid in self._by_pid.keys() - pids:
            del self._by_pid[pid]
            self._refused.pop(pid, None)
        for pid in sorted(pids - self._by_pid.keys())[:_MOST_NEW]:
            self._by_pid[pid] = self._read(pid)
        found: dict[str, int] = {}
        for pid in sorted(self._by_pid):
            namespace = self._by_pid[pid]
            if namespace is not None and namespace != own and len(found) < _MOST:
                found.setdefault(namespace, pid)
        return found

    def _read(self, pid: int) -> str | None:
        try:
            return os.readlink(f"{self._proc}/{pid}/ns/net")
        except PermissionError as error:
            self._refused[pid] = error
            return None
        except OSError:
            return None  # ended
