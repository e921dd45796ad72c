"""Cgroups as they come and go: who makes them, who removes them, which are given up.

`ChurnWatch` hears of each through the kernel's tracepoints (trace/events/cgroup.h,
v4.10): `cgroup_mkdir`, `cgroup_rmdir`, `cgroup_release` (the kernel gave the
removed cgroup up: nothing holds it any more) and `cgroup_attach_task`. `ScanWatch`
needs no rights and compares directories: it knows no makers, no releases, and
nothing that came and went between two looks.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from nodescope.errors import SourceError
from nodescope.perf import event
from nodescope.perf.ring import Ring
from nodescope.quantities import SECOND_NS
from nodescope.sources.cgroups.announced import Announced, Born, Renamed
from nodescope.sources.cgroups.hierarchies import (
    LEAF_LINKS,
    UNIFIED,
    Hierarchy,
    read_hierarchies,
    walk,
)
from nodescope.sources.cgroups.maker_cgroups import MakerCgroups
from nodescope.sources.cgroups.maker_names import RenamedProcesses
from nodescope.sources.cgroups.paths_by_id import CgroupPaths
from nodescope.sources.cgroups.tracepoints import Hit, TracepointLayout, parse_records
from nodescope.sources.node.identity import read_core_lives
from nodescope.sources.node.tracefs import open_tracefs
from nodescope.sources.places import Places

Kind = Literal["made", "removed", "released", "attached"]
_TRACEPOINTS: dict[str, Kind] = {
    "cgroup_mkdir": "made",
    "cgroup_rmdir": "removed",
    "cgroup_release": "released",
    "cgroup_attach_task": "attached",
}
_BY_MAKERS = ("made", "removed")  # who did it has to be found; others tell, or nobody did it
_ALL_RINGS_BYTES = 4 << 20
_RING_BYTES = (64 << 10, 256 << 10)
_NAMES_RING_BYTES = 64 << 10
_FOLLOW_NS = 10 * SECOND_NS


class ChurnEvent(NamedTuple):
    """One thing that happened to one cgroup."""

    time_ns: int
    kind: Kind
    path: str  # from the root of its hierarchy
    hierarchy: str  # as `/proc/PID/cgroup` names it; `unified` is v2
    identity: int  # of the cgroup, within its hierarchy: a path may be used again
    pid: int | None  # the process that did it; of `attached`: the thread that was moved
    comm: str | None
    maker_cgroup: str | None = None  # the cgroup that the process itself is in


class Watch(Protocol):
    """A watch that reports cgroups as they are created and removed."""

    way: Literal["tracepoints", "scan"]

    @property
    def descriptors(self) -> Sequence[int]: ...

    @property
    def lost(self) -> int: ...

    def read(self) -> list[ChurnEvent]: ...

    def close(self) -> None: ...


def open_watch(places: Places) -> Watch:
    """Tracepoints if they are to be had, else scans."""
    try:
        return ChurnWatch(places)
    except SourceError:
        return ScanWatch(places)


# -- tracepoints -----------------------------------------------------------


class ChurnWatch:
    """The tracepoints on all cores. Raises `SourceError` where they are not to be had."""

    way: Literal["tracepoints", "scan"] = "tracepoints"

    def __init__(self, places: Places | None = None) -> None:
        self._places = places or Places()
        with open_tracefs(self._places) as tracefs:
            formats = {name: tracefs.read_format("cgroup", name) for name in _TRACEPOINTS}
        self._layouts = {
            formats[name].number: TracepointLayout(formats[name]) for name in _TRACEPOINTS
        }
        self._hierarchies: dict[int, str] = {}
        self._processes = RenamedProcesses(self._places.proc)
        unified = _find_unified(self._places)
        self._makers = MakerCgroups(self._places.proc, CgroupPaths(unified))
        self._cgroup = event.carries_cgroup(next(iter(self._layouts)), _any_cpu(self._places))
        # Where ids lead to nothing but the root, makers are found by who started them.
        self._births = not (self._cgroup and _has_cgroups(unified))
        self._cores: dict[int, _TracedCore] = {}
        self._late: list[Hit | Renamed | Born] = []
        self._lost = 0
        self._followed_ns = 0
        try:
            self._follow(time.monotonic_ns())
        except SourceError:
            self.close()
            raise

    @property
    def descriptors(self) -> list[int]:
        """To wait on: readable when a ring is half full."""
        return [core.hits.descriptor for core in self._cores.values()]

    @property
    def lost(self) -> int:
        """Events that did not fit into a ring, as far as the kernel has told."""
        return self._lost

    def read(self) -> list[ChurnEvent]:
        """Return the events since the last call, in order of time."""
        # What happens on another core while rings are read one after the other is
        # left for the next time: nothing is told before its cause.
        now = time.monotonic_ns()
        heads = [(core, core.hits.head(), core.names.head()) for core in self._cores.values()]
        found, self._late = self._late, []
        for core, hits, names in heads:
            records, lost = parse_records(core.hits.drain(hits), self._layouts, cgroup=self._cgroup)
            self._lost += lost
            found.extend(records)
            if drained := core.names.drain(names):
                self._processes.keep(drained)
        if now - self._followed_ns >= _FOLLOW_NS:
            try:
                self._follow(now)
            except SourceError:
                pass  # a core went while it was opened: it is looked at again
        if not found:
            return []
        announced = self._take_announced(found, now)
        found.extend(announced.records)
        found.sort(key=lambda record: record.time_ns)
        due = bisect_left(found, now, key=lambda record: record.time_ns)
        self._late = found[due:]
        self._makers.forget_found()
        events = [each for record in found[:due] if (each := self._take(record)) is not None]
        self._processes.learn(announced.names)
        self._makers.learn_parents(announced.parents)
        return events

    def _take_announced(self, found: list[Hit | Renamed | Born], now: int) -> Announced:
        """Return what is announced of processes, if who made or removed cgroups has to be found."""
        hits = (each for each in found if isinstance(each, Hit))
        makers = {hit.pid for hit in hits if _TRACEPOINTS[hit.tracepoint] in _BY_MAKERS}
        return self._processes.take_kept(makers, now) if makers else Announced()

    def _take(self, record: Hit | Renamed | Born) -> ChurnEvent | None:
        if isinstance(record, Renamed):
            self._processes.rename(record.pid, record.comm)
            return None
        if isinstance(record, Born):
            self._makers.is_born(record.pid, record.parent_pid)
            return None
        kind = _TRACEPOINTS[record.tracepoint]
        pid, comm, maker_cgroup = record.task_pid, record.task_comm, None
        hierarchy = self._hierarchy(record.root)
        if kind == "made" and hierarchy == UNIFIED:
            self._makers.learn(record.identity, record.path)
        if kind in _BY_MAKERS:
            pid, comm = record.pid, self._processes.name(record.pid)
            maker_cgroup = self._makers.find(record.pid, record.cgroup)
        return ChurnEvent(
            record.time_ns, kind, record.path, hierarchy, record.identity, pid, comm, maker_cgroup
        )

    def _hierarchy(self, number: int) -> str:
        if number not in self._hierarchies:
            self._hierarchies |= _read_hierarchy_numbers(self._places)
        return self._hierarchies.setdefault(number, str(number))

    def _follow(self, now: int) -> None:
        """Watch exactly the cores that are online, and those anew that were offline."""
        self._followed_ns = now
        lives = read_core_lives(self._places.sys)
        for cpu in [cpu for cpu, core in self._cores.items() if lives.get(cpu) != core.life]:
            self._cores.pop(cpu).close()
        least, most = _RING_BYTES
        size = least
        while size < most and size * 2 * len(lives) <= _ALL_RINGS_BYTES:
            size *= 2
        for cpu, life in lives.items():
            if cpu not in self._cores:
                wanted = [
                    event.Tracepoint(number, size // 2, cgroup=self._cgroup)
                    for number in self._layouts
                ]
                names = event.Renames(_NAMES_RING_BYTES // 2, births=self._births)
                self._cores[cpu] = _TracedCore(cpu, life, wanted, names, size)

    def close(self) -> None:
        """Give everything back."""
        while self._cores:
            self._cores.popitem()[1].close()


class _TracedCore:
    """The rings of one core: hits of all tracepoints, and apart from them, names."""

    def __init__(
        self,
        cpu: int,
        life: int,
        wanted: Sequence[event.Tracepoint],
        names: event.Renames,
        size_bytes: int,
    ) -> None:
        self.life = life
        self._others: list[int] = []
        self.names = Ring(cpu, names, _NAMES_RING_BYTES)
        try:
            self.hits = Ring(cpu, wanted[0], size_bytes)
        except SourceError:
            self.names.close()
            raise
        try:
            for other in wanted[1:]:
                self._others.append(event.open_event(other.attribute(), cpu=cpu))
                event.redirect(self._others[-1], self.hits.descriptor)
            for descriptor in (self.names.descriptor, self.hits.descriptor, *self._others):
                event.enable(descriptor)
        except OSError as error:
            self.close()
            raise SourceError(f"tracepoints of CPU {cpu}", error.strerror or str(error)) from error

    def close(self) -> None:
        for descriptor in self._others:
            os.close(descriptor)
        self.hits.close()
        self.names.close()


def _find_unified(places: Places) -> Path | None:
    """Return where the unified hierarchy is mounted; None where there is none."""
    try:
        found = read_hierarchies(places)
    except SourceError:
        return None
    return next((each.mount for each in found if each.name == UNIFIED), None)


def _has_cgroups(unified: Path | None) -> bool:
    """Return whether anything but the root is in the unified hierarchy."""
    if unified is None:
        return False
    try:
        return unified.stat().st_nlink > LEAF_LINKS
    except OSError:
        return False


def _any_cpu(places: Places) -> int:
    return min(read_core_lives(places.sys), default=0)


def _read_hierarchy_numbers(places: Places) -> dict[int, str]:
    try:
        return parse_hierarchy_numbers((places.proc / "self/cgroup").read_bytes())
    except OSError:
        return {}


def parse_hierarchy_numbers(content: bytes) -> dict[int, str]:
    """The number of each hierarchy, from `/proc/self/cgroup`."""
    numbers: dict[int, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        number, _, rest = line.partition(":")
        if number.isdigit():
            numbers[int(number)] = rest.partition(":")[0] or UNIFIED
    return numbers


# -- scans -----------------------------------------------------------------


class ScanWatch:
    """The memory controller's and the v2 hierarchy, scanned at each `read`."""

    way: Literal["tracepoints", "scan"] = "scan"
    descriptors: Sequence[int] = ()  # nothing to wait on
    lost = 0

    def __init__(
        self, places: Places | None = None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        hierarchies = read_hierarchies(places or Places())
        chosen = [each for each in hierarchies if each.version == 2 or "memory" in each.controllers]
        self._hierarchies: list[Hierarchy] = chosen or hierarchies[:1]
        self._clock = clock
        self._seen = [dict(walk(each.mount)) for each in self._hierarchies]

    def read(self) -> list[ChurnEvent]:
        """Return the differences from the last look: cgroups that appeared and that went away."""
        now = self._clock()
        found: list[ChurnEvent] = []
        for at, hierarchy in enumerate(self._hierarchies):
            before, after = self._seen[at], dict(walk(hierarchy.mount))
            self._seen[at] = after
            sides: tuple[tuple[Kind, dict[str, int], dict[str, int]], ...] = (
                ("removed", before, after),
                ("made", after, before),
            )
            for kind, here, there in sides:
                found.extend(
                    ChurnEvent(now, kind, path, hierarchy.name, inode, None, None)
                    for path, inode in here.items()
                    if there.get(path) != inode
                )
        return found

    def close(self) -> None:
        """Nothing is held."""
