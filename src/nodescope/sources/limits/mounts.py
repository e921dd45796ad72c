"""Mounted file systems, by `/proc/self/mountinfo`, and which of them it is safe to ask.

    36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/root rw,errors=continue

(proc_pid_mountinfo(5).) Asking a network file system or one in user space may take forever, and
so may the way to a mount point that lies on one: those are left out. Of several mounts
of one file system the one with the shortest path stands for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource

_LOCAL = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "jfs", "reiserfs",
     "nilfs2", "vfat", "tmpfs")
)  # fmt: skip
_MAY_HANG = frozenset(
    ("nfs", "nfs3", "nfs4", "cifs", "smb3", "smbfs", "ceph", "9p", "afs", "lustre", "gfs2",
     "ocfs2", "gpfs", "beegfs", "glusterfs", "orangefs", "coda", "virtiofs", "vboxsf", "autofs")
)  # fmt: skip
_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
_MOST = 512  # file systems that are asked
# What says that a file system takes no more writes; from v6.13 on ext4 keeps `rw` beside it.
_WRITES_END = ("shutdown", "emergency_ro", "ro")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table."""

    number: int
    parent: int
    device: str  # `major:minor`
    root: str  # folder of the file system that is mounted
    point: str
    kind: str
    source: str
    options: frozenset[str]  # of the file system, not of this mount

    @property
    def in_user_space(self) -> bool:
        """Whether a process answers for it."""
        return self.kind.split(".")[0] in ("fuse", "fuseblk")

    @property
    def may_hang(self) -> bool:
        """Whether somebody else must answer, who may not."""
        return self.kind in _MAY_HANG or self.in_user_space

    @property
    def writes_end(self) -> str | None:
        """The option that says that it takes no writes; None if it does."""
        return next((option for option in _WRITES_END if option in self.options), None)


def parse_mountinfo(content: bytes) -> list[Mount]:
    """Return every mount, in the order of the table."""
    found = []
    for number, line in enumerate(content.decode("utf-8", "surrogateescape").split("\n"), 1):
        if not line:
            continue
        head, _, tail = line.partition(" - ")
        fields, rest = head.split(" "), tail.split(" ")
        if len(fields) < 6 or len(rest) < 3 or not (fields[0].isdigit() and fields[1].isdigit()):
            raise MalformedSource("mountinfo", f"not a mount: {line[:80]!r}", number)
        mount = Mount(
            int(fields[0]), int(fields[1]), fields[2], _unescape(fields[3]), _unescape(fields[4]),
            rest[0], _unescape(rest[1]), frozenset(rest[2].split(",")),
        )  # fmt: skip
        found.append(mount)
    return found


def _unescape(text: str) -> str:
    if "\\" in text:
        for code, character in _ESCAPES:
            text = text.replace(code, character)
    return text


def choose_local(mounts: Iterable[Mount]) -> list[Mount]:
    """Return one mount of each local file system that can be asked without waiting."""
    by_number = {mount.number: mount for mount in mounts}
    chosen: dict[str, Mount] = {}
    for mount in by_number.values():
        if mount.kind not in _LOCAL or _lies_on_one_that_may_hang(mount, by_number):
            continue
        other = chosen.get(mount.device)
        if other is None or _order(mount) < _order(other):
            chosen[mount.device] = mount
    return list(chosen.values())[:_MOST]


def _order(mount: Mount) -> tuple[bool, int, str]:
    """Whole file systems before folders of one, then the shortest path."""
    return (mount.root != "/", len(mount.point), mount.point)


def _lies_on_one_that_may_hang(mount: Mount, by_number: dict[int, Mount]) -> bool:
    seen = set()
    above = by_number.get(mount.parent)
    while above is not None and above.number not in seen:
        if above.may_hang:
            return True
        seen.add(above.number)
        above = by_number.get(above.parent)
    return False


def place_mounts(mounts: list[Mount], root: Path) -> list[tuple[Mount, str, str]]:
    """Return each mount with its path on the node and the path at which we reach it.

    A host whose root is mounted below ours shows its mounts there, and only those count; a
    recorded tree has the paths of its node.
    """
    if root == Path("/"):
        return [(mount, mount.point, mount.point) for mount in mounts]
    prefix = str(root).rstrip("/")
    below = [each for each in mounts if each.point == prefix or each.point.startswith(prefix + "/")]
    if below:
        return [(each, each.point.removeprefix(prefix) or "/", each.point) for each in below]
    return [(each, each.point, prefix + each.point) for each in mounts]


def read_device_name(sys: Path, mount: Mount) -> str:
    """Return the device as the kernel's log names it: `sda1`, `dm-0`; `/dev/root` is no device."""
    try:
        return os.path.basename(os.readlink(sys / "dev/block" / mount.device))
    except OSError:  # of several devices, or of none
        return os.path.basename(mount.source)
