"""Mounts a file system of the kernel for this process alone.

A mount that is attached to no folder goes with its descriptor and leaves nothing behind
(fsmount, v5.2).
"""

from __future__ import annotations

import ctypes
import os

# Numbers of system calls since v5.0 are the same on all architectures we meet.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_CLOEXEC, _CONFIG_CREATE = 1, 6
_READ_ONLY, _NO_SUID, _NO_DEV, _NO_EXEC = 1, 2, 4, 8

_libc = ctypes.CDLL(None, use_errno=True)


def mount_detached(kind: str) -> int:
    """Return a descriptor of the root of a file system that is mounted nowhere."""
    context = _call(_FSOPEN, kind.encode(), _CLOEXEC)
    try:
        _call(_FSCONFIG, context, _CONFIG_CREATE, None, None, 0)
        return _call(_FSMOUNT, context, _CLOEXEC, _READ_ONLY | _NO_SUID | _NO_DEV | _NO_EXEC)
    finally:
        os.close(context)


def _call(number: int, *arguments: int | bytes | None) -> int:
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    answer: int = _libc.syscall(ctypes.c_long(number), *passed)
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer
