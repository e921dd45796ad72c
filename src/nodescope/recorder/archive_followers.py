"""Notice readers of the open segment: a page that follows, a view of the last minute.

The kernel tells (inotify) when a file of the open segment is read; nobody has to ask
us, or be allowed to write. Who only looks at names and sizes is not noticed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

from nodescope.quantities import SECOND_NS

LATELY_NS = 10 * SECOND_NS
_ACCESS = 0x1  # inotify(7): IN_ACCESS
_EVENTS_BYTES = 1 << 16

_libc = ctypes.CDLL(None, use_errno=True)


class Readers:
    """Watches one folder at a time. Where the kernel allows no watch, nobody is ever seen."""

    def __init__(self) -> None:
        # A C library other than glibc and musl may not have it; a user may have too many.
        start = getattr(_libc, "inotify_init1", lambda flags: -1)
        self._descriptor: int = start(os.O_NONBLOCK | os.O_CLOEXEC)
        self._folder: Path | None = None
        self._seen_ns: int | None = None

    def watch(self, folder: Path | None) -> None:
        """Watch this folder from now on; the one before has ended."""
        if folder == self._folder or self._descriptor < 0:
            return
        self._folder = folder
        if folder is not None:
            _libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _ACCESS)

    def forget(self) -> None:
        """Drop what was told so far: it was we who read."""
        self._take()

    def lately(self, now_ns: int) -> bool:
        """Return whether somebody has read in the last ten seconds."""
        if self._take():
            self._seen_ns = now_ns
        return self._seen_ns is not None and now_ns - self._seen_ns < LATELY_NS

    def _take(self) -> bool:
        """Take the pending inotify events and return whether there were any."""
        told = False
        with contextlib.suppress(OSError):
            while self._descriptor >= 0 and os.read(self._descriptor, _EVENTS_BYTES):
                told = True
        return told

    def close(self) -> None:
        """Watch no more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
