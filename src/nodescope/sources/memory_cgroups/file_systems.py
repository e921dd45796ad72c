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
from nodescope.sources.places import Places

_MEMORY = frozenset((b"tmpfs", b"ramfs", b"devtmpfs"))
_DISK = frozenset((b"ext2", b"ext3", b"ext4", b"xfs", b"btrfs", b"f2fs", b"zfs", b"vfat", b"exfat",
                   b"ntfs3", b"jfs", b"reiserfs", b"bcachefs", b"erofs", b"squashfs"))  # fmt: skip
_OVERLAY = frozenset((b"overlay", b"aufs"))


@dataclass(frozen=True, slots=True)
class FileSystem:
    """One of them: where it is mounted, as that can be opened from here."""

    device: str  # major:minor
    path: str
    in_memory: bool
    layered: bool = False  # its pages belong to files of another file system


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of a mount table."""

    device: str
    root: str
    point: str
    type: bytes


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
            in_memory, layered = mount.type in _MEMORY, mount.type in _OVERLAY
            if not (in_memory or layered or mount.type in _DISK):
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
    in_memory = any(mount.device == name and mount.type in _MEMORY for mount in mounts)
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


def parse_mountinfo(content: bytes) -> list[Mount]:
    """`36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`."""
    mounts = []
    for line in content.splitlines():
        before, _, after = line.partition(b" - ")
        fields = before.split(b" ")
        if len(fields) >= 6 and after:
            mounts.append(
                Mount(
                    os.fsdecode(fields[2]),
                    os.fsdecode(_unescape(fields[3])),
                    os.fsdecode(_unescape(fields[4])),
                    after.split(b" ")[0],
                )
            )
    return mounts


def _unescape(path: bytes) -> bytes:
    for code, character in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"),
                            (b"\\134", b"\\")):  # fmt: skip
        path = path.replace(code, character)
    return path
