"""One `fix` per node at a time: a lock that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from nodescope.errors import RemedyBusy
from nodescope.remedy.files.system_errors import translated

_NAME = "lock"


@contextlib.contextmanager
def locked_node(folder: Path) -> Iterator[None]:
    """Have the node's lock inside the block; `RemedyBusy` names the process that has it."""
    path = folder / _NAME
    with translated(str(path)):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    try:
        _take(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
        raise RemedyBusy(
            f"another `nodescope fix` works on this node: pid {holder or 'not known yet'}",
            hint="wait until it ends; `nodescope fix status` shows how far it is",
        ) from error
    with translated(str(path)):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def find_working_pid(folder: Path) -> int | None:
    """Return the process that applies or undoes a plan on the node now; None if none does."""
    try:
        descriptor = os.open(folder / _NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
        return int(holder) if holder.isdecimal() else 0
    finally:
        os.close(descriptor)
    return None
