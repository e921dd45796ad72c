"""Parents that leave many ended processes unreaped for minutes.

Some processes are looked at in each round, in turn, so that the cost does not depend on how
many there are. An ended process counts once it was seen ended five minutes apart.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from nodescope.quantities import SECOND_NS
from nodescope.records.event import Event
from nodescope.records.trouble_details import ReapingDetails
from nodescope.sources.cgroups.of_process import read_cgroup_of
from nodescope.sources.processes.unreaped import read_ended, read_stat

_EACH_ROUND = 100
_MANY, _FEW = 20, 10
_LONG_NS = 300 * SECOND_NS


class UnreapedWatch:
    """Follows the ended processes of every parent."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._left: list[int] = []  # of the current pass
        self._ended: dict[int, tuple[int, int]] = {}  # pid → parent, since when seen ended
        self._reported: set[int] = set()

    def look(self, now_ns: int) -> list[Event]:
        """Look at some processes; return events of parents that do not reap."""
        if not self._left:
            self._left = self._list()
        batch, self._left = self._left[:_EACH_ROUND], self._left[_EACH_ROUND:]
        for pid in batch:
            stat = read_ended(self._proc, pid)
            if stat is None:
                self._ended.pop(pid, None)
            elif self._ended.get(pid, (None, 0))[0] != stat.parent:
                self._ended[pid] = (stat.parent, now_ns)
        return self._report(now_ns)

    def _list(self) -> list[int]:
        try:
            pids = sorted(int(name) for name in os.listdir(self._proc) if name.isdigit())
        except OSError:
            return []
        for pid in self._ended.keys() - set(pids):
            del self._ended[pid]
        return pids

    def _report(self, now_ns: int) -> list[Event]:
        long: defaultdict[int, int] = defaultdict(int)
        for parent, since_ns in self._ended.values():
            long[parent] += now_ns - since_ns >= _LONG_NS
        self._reported = {parent for parent in self._reported if long[parent] > _FEW}
        found = []
        for parent, count in long.items():
            if count >= _MANY and parent not in self._reported:
                self._reported.add(parent)
                found.append(self._event(now_ns, parent, count))
        return found

    def _event(self, now_ns: int, parent: int, count: int) -> Event:
        stat = read_stat(self._proc, parent)
        name = stat.comm if stat is not None else str(parent)
        cgroup = read_cgroup_of(self._proc, parent)
        details = ReapingDetails(parent=name, pid=parent, count=count, cgroup=cgroup)
        message = f"{name} ({parent}) has not reaped {count} ended processes for minutes"
        return Event(now_ns, "process_zombies", name, message, details=details)
