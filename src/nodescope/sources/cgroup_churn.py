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
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from nodescope.errors import SourceError
from nodescope.sources.cgroup_trace import Hit, Layout, Renamed, parse_records
from nodescope.sources.cgroup_tree import UNIFIED, Hierarchy, read_hierarchies, walk
from nodescope.sources.node import read_online_cpus
from nodescope.sources.perf import event
from nodescope.sources.perf.ring import Ring
from nodescope.sources.places import Places
from nodescope.sources.tracefs import open_tracefs

Kind = Literal["made", "removed", "released", "attached"]
_TRACEPOINTS: dict[str, Kind] = {
    "cgroup_mkdir": "made",
    "cgroup_rmdir": "removed",
    "cgroup_release": "released",
    "cgroup_attach_task": "attached",
}
_ALL_RINGS_BYTES = 4 << 20
_RING_BYTES = (64 << 10, 256 << 10)
_MAX_NAMES = 4096  # of processes, remembered at once
_FOLLOW_NS = 10_000_000_000


class ChurnEvent(NamedTuple):
    """One thing that happened to one cgroup."""

    time_ns: int
    kind: Kind
    path: str  # from the root of its hierarchy
    hierarchy: str  # as `/proc/PID/cgroup` names it; `unified` is v2
    identity: int  # of the cgroup, within its hierarchy: a path may be used again
    pid: int | None  # the process that did it; of `attached`: the thread that was moved
    comm: str | None


class Watch(Protocol):
    """What hears of cgroups that come and go."""

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
        self._layouts = {formats[name].number: Layout(formats[name]) for name in _TRACEPOINTS}
        self._hierarchies: dict[int, str] = {}
        self._comms: dict[int, str] = {}
        self._rings: dict[int, tuple[Ring, list[int]]] = {}
        self._late: list[Hit | Renamed] = []
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
        return [ring.descriptor for ring, _ in self._rings.values()]

    @property
    def lost(self) -> int:
        """Events that did not fit into a ring, as far as the kernel has told."""
        return self._lost

    def read(self) -> list[ChurnEvent]:
        """What happened since the last call, in the order of time."""
        # What happens on another core while rings are read one after the other is
        # left for the next time: nothing is told before its cause.
        now = time.monotonic_ns()
        records, self._late = self._late, []
        heads = [(ring, ring.head()) for ring, _ in self._rings.values()]
        for ring, head in heads:
            found, lost = parse_records(ring.drain(head), self._layouts)
            self._lost += lost
            for record in found:
                (self._late if record.time_ns >= now else records).append(record)
        records.sort(key=lambda record: record.time_ns)
        if now - self._followed_ns >= _FOLLOW_NS:
            self._follow(now)
        return [each for record in records if (each := self._take(record)) is not None]

    def _take(self, record: Hit | Renamed) -> ChurnEvent | None:
        if isinstance(record, Renamed):
            self._name(record.pid, record.comm)
            return None
        kind = _TRACEPOINTS[record.tracepoint]
        pid, comm = record.task_pid, record.task_comm
        if kind in ("made", "removed"):
            pid, comm = record.pid, self._comm(record.pid)
        hierarchy = self._hierarchy(record.root)
        return ChurnEvent(record.time_ns, kind, record.path, hierarchy, record.identity, pid, comm)

    def _name(self, pid: int, comm: str) -> None:
        self._comms.pop(pid, None)
        self._comms[pid] = comm
        if len(self._comms) > _MAX_NAMES:
            del self._comms[next(iter(self._comms))]

    def _comm(self, pid: int) -> str | None:
        """Its name: as it was announced, else as it is now, if the process still lives."""
        if pid not in self._comms:
            try:
                comm = (self._places.proc / str(pid) / "comm").read_bytes()
            except OSError:
                return None
            self._name(pid, comm.decode("utf-8", "replace").rstrip("\n"))
        return self._comms[pid]

    def _hierarchy(self, number: int) -> str:
        if number not in self._hierarchies:
            self._hierarchies |= _read_hierarchy_numbers(self._places)
        return self._hierarchies.setdefault(number, str(number))

    def _follow(self, now: int) -> None:
        """Watch exactly the cores that are online."""
        self._followed_ns = now
        online = read_online_cpus(self._places.sys)
        for cpu in [cpu for cpu in self._rings if cpu not in online]:
            _close(*self._rings.pop(cpu))
        least, most = _RING_BYTES
        size = least
        while size < most and size * 2 * len(online) <= _ALL_RINGS_BYTES:
            size *= 2
        for cpu in online:
            if cpu not in self._rings:
                self._rings[cpu] = _open(cpu, list(self._layouts), size)

    def close(self) -> None:
        """Give everything back."""
        while self._rings:
            _close(*self._rings.popitem()[1])


def _open(cpu: int, numbers: list[int], size_bytes: int) -> tuple[Ring, list[int]]:
    """One ring for all tracepoints of a core, and the descriptors of all but the first."""
    first, *others = numbers
    ring = Ring(
        cpu, event.Tracepoint(first, comm=True, watermark_bytes=size_bytes // 2), size_bytes
    )
    descriptors: list[int] = []
    try:
        for number in others:
            wanted = event.Tracepoint(number, watermark_bytes=size_bytes // 2)
            descriptors.append(event.open_event(wanted.attribute(), cpu=cpu))
            event.redirect(descriptors[-1], ring.descriptor)
        for descriptor in (ring.descriptor, *descriptors):
            event.enable(descriptor)
    except OSError as error:
        _close(ring, descriptors)
        raise SourceError(f"tracepoints of CPU {cpu}", error.strerror or str(error)) from error
    return ring, descriptors


def _close(ring: Ring, descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
    ring.close()


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
        """What is there now and was not, and the other way round."""
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
