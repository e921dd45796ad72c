"""Processes inside the cgroups of units, watched for some time.

A supervisor that starts its child again and again looks like one healthy
process to systemd. Seen from here it is an old process whose children are
always young, and whose children end with errors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.errors import SourceError
from nodescope.sources.cgroups.owner_by_path import find_owner
from nodescope.sources.cgroups.paths_by_id import find_default_hierarchy
from nodescope.sources.places import Places
from nodescope.sources.processes.exits import TaskExit, TaskExits
from nodescope.sources.processes.listening_sockets import read_listening
from nodescope.sources.processes.open_descriptors import read_holdings

_LOOK_S = 0.25
_MAX_PIDS = 4096
_MAX_DEPTH = 8
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """A process as it was when first seen; `started_us` is since boot."""

    pid: int
    parent: int
    comm: str
    started_us: int
    command: str
    # Used so far, with its children that ended; no part of who it is.
    cpu_us: int = field(default=0, compare=False)


@dataclass(slots=True)
class UnitInside:
    """The processes seen inside one unit."""

    unit: str
    processes: dict[int, Process] = field(default_factory=dict)
    running: frozenset[int] = frozenset()  # at the last look
    exits: list[TaskExit] = field(default_factory=list)
    listening: tuple[str, ...] = ()
    holds: tuple[str, ...] | None = None  # None: it cannot be seen
    cpu_us: int = 0  # of those that run, since they began

    @property
    def main(self) -> Process | None:
        """The oldest process."""
        return min(self.processes.values(), key=lambda each: each.started_us, default=None)


@dataclass(slots=True)
class Insides:
    """The processes seen inside units, for how long, and whether exit codes were visible."""

    of: dict[str, UnitInside] = field(default_factory=dict)
    watched_us: int = 0
    until_us: int = 0  # since boot
    sees_exits: bool = False
    why_no_exits: str = ""


def watch_insides(
    places: Places,
    cgroups: Mapping[str, str],
    longest_ns: int,
    is_settled: Callable[[Insides], bool],
) -> Insides:
    """Look at the cgroups of units, by unit, until all is settled or the time is over."""
    insides = Insides({unit: UnitInside(unit) for unit in cgroups})
    root = _hierarchy(places)
    if root is None or not cgroups:
        return insides
    exits: TaskExits | None = None
    try:
        exits = TaskExits()
        insides.sees_exits = True
    except SourceError as error:
        insides.why_no_exits = error.reason
    began = time.monotonic_ns()
    try:
        while True:
            for unit, cgroup in cgroups.items():
                _look(insides.of[unit], f"{root}{cgroup}", places.proc)
            if exits is not None:
                _hear(insides, exits)
            insides.until_us = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
            insides.watched_us = (time.monotonic_ns() - began) // 1000
            if insides.watched_us * 1000 >= longest_ns or is_settled(insides):
                break
            time.sleep(_LOOK_S)
    finally:
        if exits is not None:
            exits.close()
    for inside in insides.of.values():
        inside.listening = read_listening(places.proc, inside.running)
        inside.holds = read_holdings(places.proc, inside.running)
        alive = (read_process(places.proc, pid) for pid in inside.running)
        inside.cpu_us = sum(each.cpu_us for each in alive if each is not None)
    return insides


def _hierarchy(places: Places) -> str | None:
    root = find_default_hierarchy(Path("/proc"))
    if root is not None and (places.root == Path("/") or not _has_tree(places.root)):
        return str(root)
    for relative in ("sys/fs/cgroup/unified", "sys/fs/cgroup/systemd", "sys/fs/cgroup"):
        if (places.root / relative / "cgroup.procs").exists():
            return str(places.root / relative)
    return None


def _has_tree(root: Path) -> bool:
    return (root / "sys/fs/cgroup").is_dir() and any((root / "sys/fs/cgroup").iterdir())


def _look(inside: UnitInside, directory: str, proc: Path) -> None:
    running = set()
    for pid in _pids(directory):
        running.add(pid)
        if pid not in inside.processes and len(inside.processes) < _MAX_PIDS:
            process = read_process(proc, pid)
            if process is not None:
                inside.processes[pid] = process
    inside.running = frozenset(running)


def _hear(insides: Insides, exits: TaskExits) -> None:
    try:
        _assign(insides, exits.take())
    except SourceError as error:
        insides.sees_exits, insides.why_no_exits = False, error.reason
    if exits.lost:
        insides.sees_exits = False
        insides.why_no_exits = "more processes ended than could be heard of"


def _assign(insides: Insides, exits: list[TaskExit]) -> None:
    """An end belongs to the unit of the parent, who outlives it."""
    by_pid = {pid: inside for inside in insides.of.values() for pid in inside.processes}
    for each in exits:
        inside = by_pid.get(each.parent)
        if inside is not None and len(inside.exits) < _MAX_PIDS:
            inside.exits.append(each)


def _pids(directory: str, depth: int = 0) -> Iterator[int]:
    """The processes of a cgroup and of those below it."""
    try:
        with open(f"{directory}/cgroup.procs", "rb") as file:
            for word in file.read(1 << 20).split():
                if word.isdigit() and word != b"0":  # 0: out of our pid namespace
                    yield int(word)
        if depth < _MAX_DEPTH:
            with os.scandir(directory) as entries:
                below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            for path in below:
                yield from _pids(path, depth + 1)
    except OSError:
        return  # removed while we looked


def read_process(proc: Path, pid: int) -> Process | None:
    """A process as it is; None once it has ended."""
    try:
        with open(proc / str(pid) / "stat", "rb") as file:
            stat = file.read(4096)
        with open(proc / str(pid) / "cmdline", "rb") as file:
            command = file.read(4096)
    except OSError:
        return None  # it ended: normal
    return parse_process(pid, stat, command, _TICKS)


def read_children(proc: Path, pid: int) -> list[Process]:
    """The children its first thread has now."""
    try:
        with open(proc / str(pid) / "task" / str(pid) / "children", "rb") as file:
            pids = [int(word) for word in file.read(1 << 16).split() if word.isdigit()]
    except OSError:
        return []  # it ended, or this kernel does not tell
    found = (read_process(proc, each) for each in pids[:_MAX_PIDS])
    return [each for each in found if each is not None]


@dataclass(frozen=True, slots=True)
class Service:
    """A service by the cgroup it is in: other systemds on the node may have one of that name."""

    name: str
    cgroup: str


def read_service(proc: Path, pid: int) -> Service | None:
    """The service that a process is of, by its cgroup; None if of none, or in a container."""
    try:
        with open(proc / str(pid) / "cgroup", "rb") as file:
            return parse_service(file.read(1 << 16))
    except OSError:
        return None  # it ended


def parse_service(cgroups: bytes) -> Service | None:
    """The service that a process's `cgroup` file names, in systemd's own hierarchy."""
    for line in cgroups.decode("utf-8", "replace").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "name=systemd" or (number, controllers) == ("0", ""):
            owner = find_owner(path)
            if owner is None or owner.container_id is not None or owner.unit is None:
                continue
            if owner.unit.endswith(".service"):
                above, found, _ = path.rpartition(f"/{owner.unit}")
                return Service(owner.unit, f"{above}{found}")
    return None


def parse_process(pid: int, stat: bytes, command: bytes, ticks: int) -> Process | None:
    """A process from its `stat` and `cmdline`; None if they are not what they should be."""
    head, _, rest = stat.rpartition(b")")
    fields = rest.split()
    if len(fields) < 20 or not all(fields[at].isdigit() for at in (1, 11, 12, 13, 14, 19)):
        return None
    comm = head.partition(b"(")[2].decode("utf-8", "replace")
    words = command.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    cpu_ticks = sum(int(each) for each in fields[11:15])
    return Process(
        pid,
        int(fields[1]),
        comm,
        int(fields[19]) * 1_000_000 // ticks,
        words or comm,
        cpu_ticks * 1_000_000 // ticks,
    )
