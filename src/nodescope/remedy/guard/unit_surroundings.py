"""Reads who would miss a unit: systemd's graph, processes, sockets, the bus, mounts.

A systemd in another namespace is asked by its own bus; its processes are ours to see all the
same, by their cgroups, and their sockets through the network namespace of one of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceError
from nodescope.judgement.container_loops import loops_by_counter
from nodescope.judgement.unit_loops import loops_now
from nodescope.judgement.unit_use import find_stopped_with
from nodescope.records.json import JsonObject
from nodescope.remedy.engine import ENGINES, container_name, open_engine
from nodescope.remedy.guard.socket_use import SocketReading
from nodescope.remedy.guard.surroundings import Surroundings
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.containers.docker import container_of
from nodescope.sources.node.mount_table import parse_mountinfo
from nodescope.sources.processes.process_table import (
    ProcessSeen,
    ProcessTable,
    parse_cgroup_paths,
    read_process_table,
)
from nodescope.sources.systemd.bus_names import BusNames, read_bus_names
from nodescope.sources.systemd.control_groups import find_prefix
from nodescope.sources.systemd.unit import Unit
from nodescope.wire.json_fields import text

_STARTERS = ("socket", "timer", "path")
_MAX_BYTES = 1 << 20
_MOST_LOOKS = 5


def read_unit_surroundings(name: str, node: NodeAccess) -> Surroundings:
    """Read the facts about one unit; `SourceError` if its systemd cannot be asked.

    What loops may end between two reads: a process that is gone is not one that is hidden, so
    all is read again while the unit is in another run, or has no main process now.
    """
    before, found = _read_run(name, node), _read_once(name, node)
    for _ in range(_MOST_LOOKS):
        now = _read_run(name, node)
        if not found.unseen or (before == now and now and now[0]):
            break
        before, found = now, _read_once(name, node)
    return found


def _read_run(name: str, node: NodeAccess) -> tuple[int | None, str | None, int | None] | None:
    """Return what tells one run of a unit from the next: also between two, none has a process."""
    unit = node.manager.read_units([name]).get(name)
    return None if unit is None else (unit.main_pid, unit.invocation, unit.restarts)


def _read_once(name: str, node: NodeAccess) -> Surroundings:
    manager = node.manager
    unit = manager.read_units([name]).get(name)
    if unit is None:
        raise SourceAbsent(name, "systemd knows no unit of this name")
    now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    # What a socket, timer or path starts is what would be missed.
    started = _read_started(node, unit)
    stopped = find_stopped_with(unit, manager.read_units, now_us)
    look = NodeLook.at(node)
    members, unseen = look.members_of([unit, *started])
    use = look.sockets.use_of(members, _listening_names(node, unit))
    names, watchers = look.names_of(members)
    kept = look.kept_by(members, use.listens, node)
    if unit.suffix == "slice":
        stopped = tuple(dict.fromkeys((*stopped, *_units_of(members))))
    return Surroundings(
        name=name,
        kind="unit",
        state=unit.active or "",
        loops=any(loops_now(each, now_us) for each in (unit, *started)),
        stops_with=tuple(each for each in stopped if each not in {s.name for s in started}),
        provides=tuple(target for each in (unit, *started) for target in each.provides),
        listens=use.listens,
        clients=use.clients,
        reaches=use.reaches,
        mounts=look.mounts_of(members),
        bus_names=names or ((unit.bus_name,) if unit.bus_name and unit.active == "active" else ()),
        watchers=watchers,
        runs_inside=kept,
        programs=tuple(sorted({each.comm for each in members})),
        ours=look.is_ours(members, [each.cgroup or "" for each in look.placed([unit, *started])]),
        unseen=(*unseen, *use.unseen, *look.names_unseen(members), *look.unseen),
    )


@dataclass(slots=True)
class NodeLook:
    """One look at all processes of the node and at its bus."""

    proc: Path
    table: ProcessTable
    sockets: SocketReading
    prefix: str | None  # where that systemd's tree of cgroups stands in ours
    bus: BusNames | None
    containers: dict[str, JsonObject]  # inspections, by id
    bus_namespace: str | None = None  # the pid namespace in which the bus numbers processes
    unseen: tuple[str, ...] = ()

    @classmethod
    def at(cls, node: NodeAccess) -> NodeLook:
        """Look at the node of a live systemd."""
        proc = find_proc(node)
        table = read_process_table(proc)
        unseen: list[str] = []
        bus = None
        try:
            bus = read_bus_names(node.manager.bus.address)
        except SourceError as error:
            unseen.append(f"names on the bus ({error.reason})")
        containers = read_running(node)
        names = {id_: container_name(each) for id_, each in containers.items()}
        sockets = SocketReading(proc, table, {os.getpid()}, names)
        prefix = find_prefix(node.places, node.manager.bus.peer_pid, ())
        peer = table.processes.get(node.manager.bus.peer_pid or 0)
        namespace = None if peer is None else peer.pid_namespace
        return cls(proc, table, sockets, prefix, bus, containers, namespace, tuple(unseen))

    def placed(self, units: Iterable[Unit]) -> list[Unit]:
        """Return units with their cgroups as this machine names them, where that is known."""
        if self.prefix is None:
            return []
        return [
            replace(each, cgroup=self.prefix + each.control_group)
            for each in units
            if each.control_group
        ]

    def members_of(self, units: Collection[Unit]) -> tuple[list[ProcessSeen], list[str]]:
        """Return the processes of units, and what of them cannot be seen."""
        cgroups = [each.cgroup or "" for each in self.placed(units)]
        found = [
            each
            for each in self.table.processes.values()
            if any(each.is_below(cgroup) for cgroup in cgroups)
        ]
        running = any(each.main_pid for each in units)
        if running and not found:
            return [], ["its processes (in another namespace, or hidden)"]
        return found, []

    def names_of(self, members: Collection[ProcessSeen]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the bus names of processes, and who asked for their signals."""
        if self.bus is None:
            return (), ()
        by_number = self._on_bus()
        own = {each.pid for each in members}
        numbers = [number for number, each in sorted(by_number.items()) if each.pid in own]
        names = [name for number in numbers for name in self.bus.by_process.get(number, ())]
        asking = {number for name in names for number in (self.bus.watchers or {}).get(name, ())}
        known = [by_number[number] for number in sorted(asking) if number in by_number]
        others = [each for each in known if each.pid not in own and each.pid != os.getpid()]
        return tuple(names), tuple(dict.fromkeys(self.sockets.describe(each) for each in others))

    def names_unseen(self, members: Collection[ProcessSeen]) -> tuple[str, ...]:
        """Return that names of processes are not known: the bus numbers them in its namespace.

        Only if the bus has names of processes that are none of its namespace's.
        """
        if self.bus is None:
            return ()
        outside = [each for each in members if each.pid_namespace != self.bus_namespace]
        foreign = self.bus.by_process.keys() - self._on_bus().keys()
        if self.bus_namespace is not None and not (outside and foreign):
            return ()
        return ("names on the bus (its processes are in another pid namespace, or hidden)",)

    def _on_bus(self) -> dict[int, ProcessSeen]:
        """Return the processes of the bus's pid namespace by their number there."""
        if self.bus_namespace is None:
            return {}
        return {
            each.inner_pid: each
            for each in self.table.processes.values()
            if each.pid_namespace == self.bus_namespace
        }

    def mounts_of(self, members: Collection[ProcessSeen]) -> tuple[str, ...]:
        """Return the file systems in user space, if one of the processes serves some."""
        for each in members:
            if "/dev/fuse" in each.devices:
                mounts = _read_mounts(self.proc / str(each.pid) / "mountinfo")
                return tuple(sorted(mounts)) or ("/dev/fuse",)
        return ()

    def kept_by(
        self, members: Collection[ProcessSeen], listens: Collection[str], node: NodeAccess
    ) -> tuple[str, ...]:
        """Return the containers, pods and sessions whose processes these started or serve."""
        pids = {each.pid for each in members}
        kept: dict[str, None] = {}
        for each in self.table.processes.values():
            owner = each.owner
            if each.pid in pids or each.parent not in pids or owner is None:
                continue
            if owner.container_id and not self._loops(owner.container_id):
                kept[self.sockets.describe(each)] = None
            elif owner.kind == "session":
                kept[f"session {owner.unit}"] = None
        for runtime in ENGINES:
            try:
                path = open_engine(node, runtime).path
            except SourceError:
                continue
            if any(each.endswith(f"/{path.name}") for each in listens):
                for id_ in self.containers:
                    if not self._loops(id_):
                        kept[f"container {container_name(self.containers[id_])}"] = None
        if any(each.comm == "kubelet" for each in members):
            owners = (each.owner for each in self.table.processes.values())
            pods = {each.pod_uid for each in owners if each is not None and each.pod_uid}
            kept |= {f"pod {uid}": None for uid in sorted(pods)}
        return tuple(kept)

    def _loops(self, identifier: str) -> bool:
        inspected = self.containers.get(identifier)
        if inspected is None:
            return False
        container, _ = container_of(inspected, "inspection")
        return loops_by_counter(container, time.time_ns())

    def is_ours(self, members: Collection[ProcessSeen], cgroups: Collection[str]) -> str:
        """Return in which way processes or cgroups are ourselves; empty if they are not."""
        try:
            own = parse_cgroup_paths((self.proc / "self/cgroup").read_bytes())
        except OSError:
            own = ()
        if any(f"{path}/".startswith(f"{cgroup}/") for path in own for cgroup in cgroups if cgroup):
            return "nodescope itself runs in it"
        for each in members:
            try:
                with open(self.proc / str(each.pid) / "cmdline", "rb") as file:
                    words = file.read(4096).split(b"\0")
            except OSError:
                continue  # it ended
            if b"record" in words and any(os.path.basename(w) == b"nodescope" for w in words):
                return "it is the recorder: the proof of a remedy needs its recording"
        return ""


def find_proc(node: NodeAccess) -> Path:
    """Return the process table that has the node's processes by the numbers cgroups show us."""
    root = str(node.places.root)
    inside_ours = root.startswith("/proc/") and root.rstrip("/").endswith("/root")
    return Path("/proc") if inside_ours else node.places.proc


def read_running(node: NodeAccess) -> dict[str, JsonObject]:
    """Read the containers that run, of every engine that answers, by id."""
    found: dict[str, JsonObject] = {}
    for runtime in ENGINES:
        try:
            engine = open_engine(node, runtime)
            if runtime == "podman" and not engine.path.exists():
                continue
            listed = engine.list_running()
        except SourceError:
            continue  # no such engine here
        found |= {id_: each for each in listed if (id_ := text(each, "Id")) is not None}
    return found


def _read_started(node: NodeAccess, unit: Unit) -> list[Unit]:
    """Return the units that a socket, timer or path starts."""
    if unit.suffix not in _STARTERS:
        return []
    names = node.manager.read_triggers(unit.name)
    return list(node.manager.read_units(names).values())


def _listening_names(node: NodeAccess, unit: Unit) -> list[str]:
    """Return the Unix sockets that systemd listens on for a socket unit."""
    if unit.suffix != "socket":
        return []
    return [address for address in node.manager.read_listening(unit.name) if address[:1] in "/@"]


def _units_of(members: Iterable[ProcessSeen]) -> list[str]:
    owners = (each.owner for each in members)
    return sorted({each.unit for each in owners if each is not None and each.unit})


def _read_mounts(path: Path) -> list[str]:
    try:
        with open(path, "rb") as file:
            mounts = parse_mountinfo(file.read(_MAX_BYTES))
    except OSError:
        return []
    return [each.point for each in mounts if each.in_user_space]
