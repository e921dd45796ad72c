"""Every process of one moment: whose it is, who started it, and the sockets it has open.

From `/proc/PID/{stat,status,cgroup,ns/net,fd}`. Descriptors of other users' processes are
hidden from everybody but root: their sockets are then None, which is not the same as none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.errors import source_error
from nodescope.sources.cgroups.owner_by_path import CgroupOwner, find_owner

_MAX_BYTES = 64 << 10
_MAX_PROCESSES = 100_000
_PREFERRED = ("", "name=systemd", "memory", "pids", "cpu,cpuacct", "cpu")
_DEVICES = ("/dev/fuse", "/dev/kvm", "/dev/vhost-net", "/dev/watchdog")


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """One process."""

    pid: int  # as this process table numbers it
    parent: int
    comm: str
    cgroups: tuple[str, ...]  # its different paths in all hierarchies, the telling ones first
    inner_pid: int  # its number in its own pid namespace
    network: str | None  # its network namespace, `net:[4026531840]`; None: hidden
    sockets: frozenset[int] | None  # inodes; None: hidden
    devices: frozenset[str] = frozenset()  # open device files that others depend on
    pid_namespace: str | None = None  # in which `inner_pid` counts, `pid:[…]`; None: hidden

    @property
    def owner(self) -> CgroupOwner | None:
        """Return the owner by the cgroups: a container if any hierarchy names one."""
        owners = [found for path in self.cgroups if (found := find_owner(path)) is not None]
        return next((each for each in owners if each.container_id), owners[0] if owners else None)

    def is_below(self, cgroup: str) -> bool:
        """Decide whether it belongs to a unit's cgroup, and not to a container of that unit.

        Beside v1 hierarchies, runc leaves a container's processes in the unified cgroup of
        the daemon that started them: the other hierarchies name the container.
        """
        if not any(path == cgroup or path.startswith(f"{cgroup}/") for path in self.cgroups):
            return False
        owner = self.owner
        return owner is None or owner.container_id is None or owner.container_id in cgroup


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """All processes, and an index of their sockets."""

    processes: Mapping[int, ProcessSeen]
    by_socket: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # inode → pids

    def below(self, cgroup: str) -> list[ProcessSeen]:
        """Return the processes of a unit's cgroup."""
        return [each for each in self.processes.values() if each.is_below(cgroup)]

    def of_container(self, identifier: str) -> list[ProcessSeen]:
        """Return the processes of a container."""
        return [
            each
            for each in self.processes.values()
            if (owner := each.owner) is not None and owner.container_id == identifier
        ]

    def having(self, inode: int) -> list[ProcessSeen]:
        """Return the processes that have a socket open."""
        return [self.processes[pid] for pid in self.by_socket.get(inode, ())]


def read_process_table(proc: Path) -> ProcessTable:
    """Read all processes; one that ends meanwhile is left out."""
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError as error:
        raise source_error(proc, error) from error
    read = (_read_process(proc, pid) for pid in sorted(pids)[:_MAX_PROCESSES])
    return index_processes(each for each in read if each is not None)


def index_processes(processes: Iterable[ProcessSeen]) -> ProcessTable:
    """Return a table of processes."""
    table = {each.pid: each for each in processes}
    by_socket: dict[int, tuple[int, ...]] = {}
    for each in table.values():
        for inode in each.sockets or ():
            by_socket[inode] = (*by_socket.get(inode, ()), each.pid)
    return ProcessTable(table, by_socket)


def _read_process(proc: Path, pid: int) -> ProcessSeen | None:
    folder = f"{proc}/{pid}"
    try:
        stat = _read(f"{folder}/stat")
        cgroups = parse_cgroup_paths(_read(f"{folder}/cgroup"))
        status = _read(f"{folder}/status")
    except OSError:
        return None  # it ended: normal
    head, _, rest = stat.rpartition(b")")
    fields = rest.split()
    if len(fields) < 2 or not fields[1].isdigit():
        return None
    sockets, devices = _read_descriptors(f"{folder}/fd")
    return ProcessSeen(
        pid,
        int(fields[1]),
        head.partition(b"(")[2].decode("utf-8", "replace"),
        cgroups,
        parse_inner_pid(status) or pid,
        _read_link(f"{folder}/ns/net"),
        sockets,
        devices,
        _read_link(f"{folder}/ns/pid"),
    )


def parse_cgroup_paths(content: bytes) -> tuple[str, ...]:
    """Return the different paths of `/proc/PID/cgroup` below the roots, telling ones first."""
    paths: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3 and fields[2].startswith("/"):
            paths[fields[1]] = fields[2].removesuffix(" (deleted)")
    ordered = [paths.pop(name) for name in _PREFERRED if name in paths]
    return tuple(dict.fromkeys(path for path in (*ordered, *paths.values()) if path != "/"))


def parse_inner_pid(status: bytes) -> int | None:
    """Return the last number of `NSpid:`, which is that of the innermost namespace."""
    for line in status.split(b"\n"):
        if line.startswith(b"NSpid:"):
            numbers = line.split()[1:]
            return int(numbers[-1]) if numbers and numbers[-1].isdigit() else None
    return None


def _read_descriptors(folder: str) -> tuple[frozenset[int] | None, frozenset[str]]:
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, ProcessLookupError):
        return frozenset(), frozenset()  # it ended
    except OSError:
        return None, frozenset()
    sockets, devices = set(), set()
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except PermissionError:
            return None, frozenset()  # the numbers may be listed where the links are hidden
        except OSError:
            continue  # closed in the meantime
        if target.startswith("socket:[") and target[8:-1].isdigit():
            sockets.add(int(target[8:-1]))
        elif target in _DEVICES:
            devices.add(target)
    return frozenset(sockets), frozenset(devices)


def _read_link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_MAX_BYTES)
