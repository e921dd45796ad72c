from __future__ import annotations

from nodescope.sources.node.mount_table import parse_mountinfo


def test_mount_table() -> None:
    content = (
        b"23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        b"24 23 0:21 / /dev/my\\040shm rw,nosuid - tmpfs tmpfs rw,size=24682416k\n"
        b"25 23 0:22 /x/y /mnt rw shared:4 master:2 - nfs4 host:/x rw\n"
        b"torn line\n"
    )
    mounts = parse_mountinfo(content)
    assert [(each.device, each.root, each.point, each.kind) for each in mounts] == [
        ("254:0", "/", "/", "ext4"),
        ("0:21", "/", "/dev/my shm", "tmpfs"),
        ("0:22", "/x/y", "/mnt", "nfs4"),
    ]
    assert [(each.number, each.parent) for each in mounts] == [(23, 1), (24, 23), (25, 23)]
    assert mounts[1].options == {"rw", "size=24682416k"}
