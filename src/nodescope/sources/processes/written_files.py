"""Files of one file system that processes have open for writing.

    /proc/PID/fd/N       a link; its mode says whether it was opened for writing (proc_pid_fd(5))
    /proc/PID/fdinfo/N   `mnt_id`, the mount that the file was opened through
    /proc/PID/mountinfo  the file system of each mount, as the process sees them

Mounts are compared by the number of their file system: a container has the same one under
another path. Nothing but files of the one asked about is touched, so that no dead server is.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodescope.sources.cgroups.of_process import read_cgroup_of
from nodescope.sources.node.mount_table import parse_mountinfo

_MOST_BYTES = 64 << 10
_DELETED = " (deleted)"
_BLOCK = 512  # `st_blocks` counts these, whatever the file system


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a process has open for writing."""

    pid: int
    comm: str
    cgroup: str | None
    path: str  # as the process has it
    inode: int
    size_bytes: int  # that it takes of the file system
    deleted: bool


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files that were found, the largest first, and whether every process was looked at."""

    files: tuple[WrittenFile, ...]
    complete: bool


def read_written_files(
    proc: Path,
    device: str,
    most_ns: int,
    cpu_clock: Callable[[], int] = time.thread_time_ns,
) -> WrittenFiles:
    """Read who writes to the file system `major:minor`, for at most so much CPU time."""
    began_ns = cpu_clock()
    mounts: dict[str, frozenset[int]] = {}  # by mount namespace, those of the file system
    found: dict[tuple[int, int], WrittenFile] = {}
    for pid in _list_processes(proc):
        if cpu_clock() - began_ns > most_ns:
            return WrittenFiles(_sort(found), complete=False)
        numbers = _find_mounts(f"{proc}/{pid}", device, mounts)
        if numbers:
            for file in _read_files(proc, pid, numbers):
                found.setdefault((file.pid, file.inode), file)
    return WrittenFiles(_sort(found), complete=True)


def _list_processes(proc: Path) -> list[int]:
    """Return the processes there are, the youngest first: who fills a disk seldom came first."""
    return sorted((int(name) for name in os.listdir(proc) if name.isdecimal()), reverse=True)


def _sort(found: dict[tuple[int, int], WrittenFile]) -> tuple[WrittenFile, ...]:
    return tuple(sorted(found.values(), key=lambda each: (-each.size_bytes, each.pid)))


def _find_mounts(process: str, device: str, known: dict[str, frozenset[int]]) -> frozenset[int]:
    """Return the numbers that mounts of a file system have for a process; none if it has ended."""
    try:
        namespace = os.readlink(f"{process}/ns/mnt")
        if namespace not in known:
            mounts = parse_mountinfo(Path(f"{process}/mountinfo").read_bytes())
            known[namespace] = frozenset(each.number for each in mounts if each.device == device)
    except OSError:
        return frozenset()
    return known[namespace]


def _read_files(proc: Path, pid: int, mounts: frozenset[int]) -> list[WrittenFile]:
    process = f"{proc}/{pid}"
    try:
        names = os.listdir(f"{process}/fd")
    except OSError:
        return []  # it has ended, or hides them
    found = []
    for name in names:
        link = f"{process}/fd/{name}"
        try:
            target = os.readlink(link)
            if target[:1] != "/" or not os.lstat(link).st_mode & stat.S_IWUSR:
                continue
            if parse_mount_number(_read(f"{process}/fdinfo/{name}")) not in mounts:
                continue
            file = os.stat(link)
        except OSError:
            continue  # closed meanwhile
        if stat.S_ISREG(file.st_mode):
            found.append((target, file))
    if not found:
        return []
    try:
        comm = _read(f"{process}/comm").decode("utf-8", "replace").strip()
    except OSError:
        return []  # it has ended
    cgroup = read_cgroup_of(proc, pid)
    return [
        WrittenFile(
            pid, comm, cgroup, target.removesuffix(_DELETED), file.st_ino,
            file.st_blocks * _BLOCK, target.endswith(_DELETED),
        )
        for target, file in found
    ]  # fmt: skip


def parse_mount_number(content: bytes) -> int | None:
    """Return `mnt_id` of `fdinfo`; None on kernels before 3.15."""
    for line in content.splitlines():
        name, _, value = line.partition(b":")
        if name == b"mnt_id" and value.strip().isdigit():
            return int(value)
    return None


def _read(path: str) -> bytes:
    """Read a file of one piece: the kernel gives it whole at once."""
    with open(path, "rb", buffering=0) as file:
        return file.read(_MOST_BYTES)
