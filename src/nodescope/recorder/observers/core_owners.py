"""Threads that have a core to themselves, and how they are scheduled: the table `core_owners`.

Whose a core is the recorder's own samples tell (`watches.core_owners`). A row is written once
a thread has had a core for three seconds, and again at the start of each segment while it lasts.
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


class CoreOwnersObserver:
    """Asks the threads that were found how they are scheduled."""

    interval_ns = SECOND_NS
    patient = False

    def __init__(self, places: Places, owners: CoreOwners) -> None:
        self._files = TaskFiles(places.proc)
        self._owners = owners
        self._whole = True

    def begin_segment(self) -> None:
        self._whole = True

    def observe(self, now_ns: int) -> Observation:
        if self._owners.blind is not None:
            raise SourceError("core owners", self._owners.blind)
        said = Observation()
        for owned in self._owners.take(whole=self._whole):
            row = self._describe(owned, now_ns)
            if row is not None:
                said.add(row)
        self._whole = False
        return said

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
            from_ns=owned.from_ns,
        )

    def close(self) -> None:
        self._files.close()


def make(setting: Setting) -> CoreOwnersObserver:
    """Make an observer of this node's core owners."""
    return CoreOwnersObserver(setting.places, setting.core_owners)
