"""File systems whose files may pin cgroups, in every mount namespace, each once.

From `/proc/PID/mountinfo` (proc(5)) of one process per mount namespace; what is
mounted there is reached through `/proc/PID/root`. File systems that ask somebody
else, and those that hold no page cache, are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import SourceError, source_error
from nodescope.sources.kernel_files import read_file
from nodescope.sources.node.mount_table import parse_mountinfo
from nodescope.sources.places import Places

_MEMORY = frozenset(("tmpfs", "ramfs", "devtmpfs"))
_DISK = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "vfat", "exfat",
                   "ntfs3", "jfs", "reiserfs", "bcachefs", "erofs", "squashfs"))  # fmt: skip
_OVERLAY = frozenset(("overlay", "aufs"))


@dataclass(frozen=True, slots=True)
class FileSystem:
    """One of them: where it is mounted, as that can be opened from here."""

    device: str  # major:minor
    path: str
    in_memory: bool
    layered: bool = False  # its pages belong to files of another file system


def find_file_systems(places: Places) -> list[FileSystem]:
    """Those in memory first, then those on disks; overlays only where no disk can be seen."""
    found: dict[str, tuple[int, FileSystem]] = {}
    for process in _one_per_namespace(places):
        try:
            mounts = parse_mountinfo(read_file(f"{process}/mountinfo"))
        except SourceError:
            continue  # gone meanwhile
        prefix = "" if process.endswith("/self") else f"{process}/root"
        for mount in mounts:
            in_memory, layered = mount.kind in _MEMORY, mount.kind in _OVERLAY
            if not (in_memory or layered or mount.kind in _DISK):
                continue
            # A mount of the whole file system shows more than one of a folder of it.
            rank = len(mount.root)
            known = found.get(mount.device)
            if known is None or rank < known[0]:
                path = prefix + mount.point
                system = FileSystem(mount.device, path, in_memory, layered)
                found[mount.device] = (rank, system)
    systems = [system for _, system in found.values()]
    on_disk = any(not each.in_memory and not each.layered for each in systems)
    wanted = [each for each in systems if not (each.layered and on_disk)]
    return sorted(wanted, key=lambda each: not each.in_memory)


def find_file_system(folder: Path) -> FileSystem:
    """The file system of one folder, to be searched from there."""
    try:
        device = os.stat(folder).st_dev
        mounts = parse_mountinfo(read_file("/proc/self/mountinfo"))
    except OSError as error:
        raise source_error(folder, error) from error
    name = f"{os.major(device)}:{os.minor(device)}"
    in_memory = any(mount.device == name and mount.kind in _MEMORY for mount in mounts)
    return FileSystem(name, str(folder.absolute()), in_memory)


def _one_per_namespace(places: Places) -> Iterator[str]:
    """`/proc/PID` of one process per mount namespace, our own first."""
    own = "/proc/self"
    seen = {_namespace(own)}
    yield own
    for name in os.listdir(places.proc):
        if name.isdigit():
            namespace = _namespace(f"{places.proc}/{name}")
            if namespace and namespace not in seen:
                seen.add(namespace)
                yield f"{places.proc}/{name}"


def _namespace(process: str) -> str:
    try:
        return os.readlink(f"{process}/ns/mnt")
    except OSError:
        return ""  # ended, or not ours to look at
