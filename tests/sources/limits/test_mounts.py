from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodescope.sources.limits.mounts import choose_local, place_mounts, read_device_name
from nodescope.sources.node.mount_table import Mount, parse_mountinfo

TABLE = rb"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 259:1 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw,discard
30 27 259:1 /var/lib/x /bind ro,relatime - ext4 /dev/root rw,discard
31 27 7:0 / /snap/core/1 ro - squashfs /dev/loop0 ro
32 27 0:50 / /overlay rw - overlay overlay rw,lowerdir=/l
33 27 0:51 / /mnt/nfs rw - nfs4 server:/x rw
34 33 259:2 / /mnt/nfs/scratch rw - xfs /dev/sdb rw
35 27 0:52 / /mnt/s3 rw - fuse.s3fs s3fs rw,user_id=0
36 27 0:53 / /with\040blank rw - btrfs /dev/sdc rw,subvol=/a
37 27 0:53 / /longer/path rw - btrfs /dev/sdc rw,subvol=/b
38 27 259:3 / /data rw - ext4 /dev/sdd rw,errors=remount-ro,emergency_ro
39 27 259:4 / /old ro - ext4 /dev/sde ro
40 27 259:5 / /gone rw - xfs /dev/sdf rw,shutdown
41 27 0:60 / /dev/shm rw - tmpfs tmpfs rw
"""


@pytest.fixture
def mounts() -> dict[str, Mount]:
    return {mount.point: mount for mount in parse_mountinfo(TABLE)}


def test_one_mount_of_each_local_file_system_that_answers(mounts: dict[str, Mount]) -> None:
    chosen = {mount.point for mount in choose_local(mounts.values())}
    assert chosen == {"/", "/with blank", "/data", "/old", "/gone", "/dev/shm"}


def test_the_options_of_the_file_system_say_whether_writes_end(mounts: dict[str, Mount]) -> None:
    ends = {point: mount.writes_end for point, mount in mounts.items()}
    assert ends["/data"] == "emergency_ro"
    assert ends["/old"] == "ro"
    assert ends["/gone"] == "shutdown"
    assert ends["/"] is None
    assert ends["/bind"] is None  # the mount is read-only, its file system is not
    assert mounts["/mnt/s3"].in_user_space
    assert not mounts["/"].may_hang


def test_a_host_below_our_root_is_all_that_counts() -> None:
    table = (
        b"1 0 0:9 / / rw - overlay overlay rw\n"
        b"2 1 259:1 / /host rw - ext4 /dev/sda rw\n"
        b"3 2 259:2 / /host/data rw - ext4 /dev/sdb rw\n"
        b"4 1 259:1 /etc/hosts /etc/hosts rw - ext4 /dev/sda rw\n"
    )
    mounts = parse_mountinfo(table)
    placed = [(scope, path) for _, scope, path in place_mounts(mounts, Path("/host"))]
    assert placed == [("/", "/host"), ("/data", "/host/data")]
    own = [(scope, path) for _, scope, path in place_mounts(mounts[1:2], Path("/"))]
    assert own == [("/host", "/host")]
    recorded = [(scope, path) for _, scope, path in place_mounts(mounts[:1], Path("/tree"))]
    assert recorded == [("/", "/tree/")]


def test_a_device_has_the_name_that_the_log_gives_it(
    tmp_path: Path, mounts: dict[str, Mount]
) -> None:
    folder = tmp_path / "dev/block"
    folder.mkdir(parents=True)
    os.symlink("../../devices/pci0000:00/nvme0n1/nvme0n1p1", folder / "259:1")
    assert read_device_name(tmp_path, mounts["/"]) == "nvme0n1p1"
    assert read_device_name(tmp_path, mounts["/with blank"]) == "sdc"
