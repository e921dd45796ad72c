"""The system's errors about a file that a remedy changes, as errors with a hint."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from nodescope.errors import RemedyError

_HINTS = {
    errno.EACCES: "run it as root; as root, a security module denies it (SELinux: "
    "`ausearch -m avc -ts recent`; AppArmor: `dmesg`)",
    errno.EPERM: "run it as root; as root, the file is immutable (`lsattr`), or a security "
    "module denies it (SELinux: `ausearch -m avc -ts recent`)",
    errno.EROFS: "the file system is read-only: nothing on this node can be changed there; "
    "change the image instead (the plan's `elsewhere` has the same change for it)",
    errno.ENOSPC: "free some space on that file system first",
    errno.EDQUOT: "free some space on that file system first",
    errno.ELOOP: "a symbolic link lies on the way; Nodescope does not follow it",
    errno.ENOTDIR: "a file or a symbolic link is where a folder should be; Nodescope does not "
    "follow links there",
    errno.EIO: "the device fails: see `dmesg`",
}


def remedy_error(path: str, error: OSError) -> RemedyError:
    """Return the system's error about a path as ours, with a hint."""
    reason = error.strerror or str(error)
    return RemedyError(f"{path!r}: {reason}", hint=_HINTS.get(error.errno or 0))


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise the system's errors inside the block as errors about `path`."""
    try:
        yield
    except OSError as error:
        raise remedy_error(path, error) from error
