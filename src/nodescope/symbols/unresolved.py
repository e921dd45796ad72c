"""Why a frame has no name: the small vocabulary that is counted, never guessed.

Everything below this package meets files that other people control. Whatever
such a file does (vanish, shrink, lie about its sizes, be a FIFO) ends in one of
these reasons; `Binaries` counts them and the frame is shown by its offset. So does
what is in no file: each frame without a name has one of these.
"""

from __future__ import annotations

import errno
from enum import StrEnum

from nodescope.errors import SourceError


class Reason(StrEnum):
    """Why a binary, or one address, could not be named."""

    ABSENT = "absent"  # no such file in any place we may look
    PROCESS_GONE = "process gone"  # its mount namespace went with it
    DENIED = "denied"
    NOT_REGULAR = "not a regular file"  # FIFO, device, directory, socket
    NOT_ELF = "not ELF"
    UNSUPPORTED = "unsupported ELF"  # big-endian, 32-bit, foreign class
    MALFORMED = "malformed"  # a size, count or offset that cannot be true
    TRUNCATED = "truncated"  # shorter than its own headers say, or shrunk later
    TOO_LARGE = "too large"  # over one of our documented limits
    REPLACED = "replaced"  # another file has taken the path since it was mapped
    DELETED = "deleted"  # unlinked, and no process kept it reachable
    NO_SYMBOLS = "no symbols"  # fine, but carries no function table at all
    NO_FUNCTION = "no function"  # no function of the table covers the address
    EVICTED = "evicted"  # dropped from the bounded cache while still in use
    NO_MAPPING = "no mapping"  # in nothing its process had mapped: a walk that strayed
    NO_KERNEL_FUNCTION = "no kernel function"  # in nothing the kernel tells of
    NO_KERNEL_SYMBOLS = "no kernel symbols"  # kallsyms is closed to us
    REMOTE = "remote file system"  # a read may never return: FUSE, NFS and kin
    IO_ERROR = "io error"


class Unresolvable(SourceError):
    """A binary that cannot name anything; stays inside this package."""

    def __init__(self, path: str, why: Reason, detail: str = "") -> None:
        super().__init__(path, f"{why}: {detail}" if detail else str(why))
        self.why = why


def reason_of(error: OSError) -> Reason:
    """Translate what the system said into the reason we count."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return Reason.DENIED
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
        return Reason.ABSENT
    if error.errno == errno.ESRCH:
        return Reason.PROCESS_GONE
    if error.errno in (errno.ENXIO, errno.ENODEV, errno.EISDIR):
        return Reason.NOT_REGULAR
    return Reason.IO_ERROR
