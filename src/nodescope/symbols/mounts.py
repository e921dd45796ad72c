"""Which files are safe to touch: those whose file system answers by itself.

Opening or reading a file on FUSE or a network file system waits for somebody
else, without limit, and O_NONBLOCK does not help. A dead NFS server, or a
container that serves its own FUSE mount, must not stop the recorder, so
binaries on such mounts are refused by reason. `/proc/PID/mountinfo` (proc(5))
answers from kernel memory.
"""

from __future__ import annotations

import os
import re

from nodescope.symbols.file_bytes import OPEN_FLAGS

MAX_MOUNTINFO_BYTES = 4 << 20
_READ_BYTES = 64 << 10

_REMOTE = re.compile(
    rb"fuse|nfs|cifs|smb|9p|ceph|lustre|gpfs|beegfs|glusterfs|afs|coda|ocfs2|gfs2|orangefs|autofs"
)
_ESCAPE = re.compile(rb"\\([0-7]{3})")


def is_remote(mountinfo_path: str, path: str) -> bool:
    """Return whether `path`, as that mount table sees it, lies on a remote file system.

    An unreadable table means the process is gone, and its files with it; the
    open that follows will say so.
    """
    try:
        fd = os.open(mountinfo_path, OPEN_FLAGS)
    except OSError:
        return False
    try:
        parts: list[bytes] = []
        total = 0
        while total < MAX_MOUNTINFO_BYTES:
            data = os.read(fd, _READ_BYTES)
            if not data:
                break
            total += len(data)
            parts.append(data)
    except OSError:
        return False
    finally:
        os.close(fd)
    return parse_is_remote(b"".join(parts), path)


def parse_is_remote(mountinfo: bytes, path: str) -> bool:
    """Return whether any mount that `path` goes through is remote.

    Any, not the innermost: walking the path touches them all.
    """
    wanted = os.fsencode(path)
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(b" - ")
        if not _REMOTE.match(rest):
            continue
        point = fields.split(b" ")[4:5]
        if not point:
            continue
        mount = _ESCAPE.sub(lambda m: bytes([int(m[1], 8) & 255]), point[0])
        if mount == b"/" or wanted == mount or wanted.startswith(mount + b"/"):
            return True
    return False
