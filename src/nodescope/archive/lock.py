"""One recorder per archive.

The lock is an open-file-description lock (`fcntl(2)`, Linux 3.15): it dies
with its process however that ends, and a reader can ask who holds it without
taking it, which `flock` cannot do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from nodescope.archive.files import open_private, translated, write_all
from nodescope.archive.layout import LOCK_FILE
from nodescope.errors import ArchiveBusy

_STRUCT_FLOCK = struct.Struct("hhqqi4x")  # l_type, l_whence, l_start, l_len, l_pid


@dataclass(frozen=True, slots=True)
class Holder:
    """The recorder that writes to an archive."""

    pid: int
    host: str


def acquire_lock(root: Path) -> int:
    """Take the archive's lock; the descriptor holds it until it is closed."""
    path = root / LOCK_FILE
    with translated(path):
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    request = _STRUCT_FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
        os.ftruncate(descriptor, 0)
        write_all(descriptor, f"{os.getpid()} {os.uname().nodename}\n".encode())
    except OSError as error:
        holder = _parse_holder(os.pread(descriptor, 4096, 0))
        os.close(descriptor)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            with translated(path):
                raise
        raise ArchiveBusy(
            root,
            f"recorder with pid {holder.pid} on {holder.host} writes to it",
            hint="stop that one first, or record to another folder with --archive",
        ) from error
    return descriptor


def find_holder(root: Path) -> Holder | None:
    """Who writes to the archive now; None if nobody does. Takes no lock."""
    path = root / LOCK_FILE
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        with translated(path):
            raise error
    try:
        question = _STRUCT_FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, question)
        if _STRUCT_FLOCK.unpack(answer)[0] == fcntl.F_UNLCK:
            return None
        return _parse_holder(os.pread(descriptor, 4096, 0))
    finally:
        os.close(descriptor)


def _parse_holder(content: bytes) -> Holder:
    pid, _, host = content.decode(errors="replace").strip().partition(" ")
    # Its holder may be between taking the lock and writing its name.
    return Holder(int(pid) if pid.isdecimal() and len(pid) < 12 else 0, host or "unknown host")
