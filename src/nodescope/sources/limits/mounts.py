"""Which mounted file systems it is safe to ask.

Asking a network file system or one in user space may take forever, and
so may the way to a mount point that lies on one: those are left out. Of several mounts
of one file system the one with the shortest path stands for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nodescope.sources.node.mount_table import Mount

_LOCAL = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "jfs", "reiserfs",
     "nilfs2", "vfat", "tmpfs")
)  # fmt: skip
_MOST = 512  # file systems that are asked


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
