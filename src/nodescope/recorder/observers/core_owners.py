"""Threads that have a core to themselves, and how they are scheduled: the table `core_owners`.

Whose a core is the recorder's own samples tell (`watches.core_owners`). A row is written once
a thread has had a core for three seconds, and again at the start of each segment while it lasts.
One that does not give way to others (a real-time policy, or bound to that core alone) is
written every ten seconds, so that there is a row near whatever starves beside it.
"""

from __future__ import annotations

from nodescope.errors import SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.core_owners import CoreOwners, OwnedCore
from nodescope.records.witness_tables import CoreOwnerRow
from nodescope.sources.cgroups.of_process import parse_cgroup_of
from nodescope.sources.places import Places
from nodescope.sources.processes.tasks import TaskFiles, parse_allowed_cpus

_AGAIN_NS = 10 * SECOND_NS
_UNYIELDING = ("fifo", "rr", "deadline")


class CoreOwnersObserver:
    """Asks the threads that were found how they are scheduled."""

    interval_ns = SECOND_NS
    patient = False

    def __init__(self, places: Places, owners: CoreOwners) -> None:
        self._files = TaskFiles(places.proc)
        self._owners = owners
        self._whole = True
        self._stubborn: dict[int, tuple[int, int]] = {}  # core: its thread, and when it was told

    def begin_segment(self) -> None:
        self._whole = True

    def observe(self, now_ns: int) -> Observation:
        if self._owners.blind is not None:
            raise SourceError("core owners", self._owners.blind)
        said = Observation()
        due = self._owners.take(whole=self._whole)
        due += [each for each in self._list_stubborn(now_ns) if each not in due]
        for owned in due:
            row = self._describe(owned, now_ns)
            if row is None:
                self._stubborn.pop(owned.cpu, None)
                continue
            said.add(row)
            if row.policy in _UNYIELDING or row.affinity == str(owned.cpu):
                self._stubborn[owned.cpu] = (owned.tid, now_ns)
        self._whole = False
        return said

    def _list_stubborn(self, now_ns: int) -> list[OwnedCore]:
        """Return the owners that give way to nobody and are to be told again."""
        if not self._stubborn:
            return []
        current = {each.cpu: each for each in self._owners.list_told()}
        for cpu, (tid, _) in list(self._stubborn.items()):
            if cpu not in current or current[cpu].tid != tid:
                del self._stubborn[cpu]
        return [
            current[cpu]
            for cpu, (_, told_ns) in self._stubborn.items()
            if now_ns - told_ns >= _AGAIN_NS
        ]

    def _describe(self, owned: OwnedCore, now_ns: int) -> CoreOwnerRow | None:
        stat = self._files.read_stat(owned.tid)
        if stat is None:
            return None  # it has ended: nothing can be said of it
        status = self._files.read(owned.tid, "status") or b""
        cgroup = self._files.read(owned.tid, "cgroup")
        return CoreOwnerRow(
            time_ns=now_ns,
            cpu=owned.cpu,
            pid=owned.pid,
            tid=owned.tid,
            comm=stat.comm,
            cgroup=None if cgroup is None else parse_cgroup_of(cgroup),
            policy=stat.policy,
            priority=stat.priority,
            affinity=parse_allowed_cpus(status),
            owned_ns=owned.owned_ns,
        )

    def close(self) -> None:
        self._files.close()


def make(setting: Setting) -> CoreOwnersObserver:
    """Make an observer of this node's core owners."""
    return CoreOwnersObserver(setting.places, setting.core_owners)
