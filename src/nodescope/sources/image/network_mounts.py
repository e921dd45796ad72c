"""File systems of `/etc/fstab` that boot mounts over the network or by a program (fstab(5)).

Local file systems are left out: an image cannot work without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodescope.sources.image.boot_items import BootItem, When
from nodescope.sources.image.image_files import ImageFiles

_REMOTE = re.compile(
    r"nfs4?|cifs|smb3|smbfs|ceph|glusterfs|lustre|afs|9p|efs|fuse(\..*)?|.*fs\.fuse"
)


def read_network_mounts(files: ImageFiles) -> Iterator[BootItem]:
    """Return the remote file systems that are mounted at boot, or when they are first used."""
    path = "/etc/fstab"
    for number, line in enumerate(files.read_text(path).splitlines(), 1):
        words = line.split()
        if len(words) < 4 or line.lstrip().startswith("#"):
            continue
        device, where, kind, options = words[0], words[1], words[2], words[3].split(",")
        automatic = "x-systemd.automount" in options
        remote = _REMOTE.fullmatch(kind) is not None or "_netdev" in options
        if remote and ("noauto" not in options or automatic):
            when = When.DEMAND if automatic else When.BOOT
            yield BootItem("mount", where, path, f"{kind} {device}", when, number)
