"""Keeping the recorder's resident memory small and flat, without paying for it.

A batch makes and drops dozens of arrays of about a megabyte. If malloc maps each
anew, the page faults cost nine times the arithmetic (measured); if it keeps all
it ever freed, memory only grows. So malloc serves from one heap, and is told with
every segment to return what is free. And code that only start-up or sealing
runs stays mapped: the pages are the page cache's, shared and clean, so unmapping
them costs a minor fault for the few that are needed again.
"""

from __future__ import annotations

import ctypes
import gc
import resource
from pathlib import Path

# mallopt(3): M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
_ONE_ARENA, _MMAP_THRESHOLD, _TRIM_THRESHOLD = (-8, 1), (-3, 32 << 20), (-1, 256 << 20)
_MADV_DONTNEED = 4

_libc = ctypes.CDLL(None, use_errno=True)


def keep_flat() -> None:
    """Serve all from one heap, and leave the cyclic collector to `let_go`.

    Nothing the recorder makes in its loop is cyclic: the collector would only
    walk what is there.
    """
    gc.disable()
    try:
        for parameter, value in (_ONE_ARENA, _MMAP_THRESHOLD, _TRIM_THRESHOLD):
            _libc.mallopt(parameter, value)
    except AttributeError:
        pass  # not glibc


def allow_files() -> None:
    """Raise the limit of open files: rings of all cores, and the binaries in use."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def trim() -> None:
    """Return free heap to the kernel."""
    try:
        _libc.malloc_trim(0)
    except AttributeError:
        pass  # not glibc


def let_go(proc: Path = Path("/proc"), *, collect: bool = False) -> None:
    """Return free heap to the kernel, and unmap library code until it is run again."""
    if collect:
        gc.collect()
        gc.freeze()  # what is left stays: the next collection need not walk it again
    trim()
    try:
        maps = (proc / "self/maps").read_bytes()
    except OSError:
        return
    for line in maps.split(b"\n"):
        fields = line.split(None, 5)
        # Only code as it is in its file: private pages that were written to
        # (relocations are, in data) would be lost.
        if len(fields) == 6 and fields[1] == b"r-xp" and fields[5].startswith(b"/"):
            start, _, end = fields[0].partition(b"-")
            address = int(start, 16)
            _libc.madvise(
                ctypes.c_void_p(address), ctypes.c_size_t(int(end, 16) - address), _MADV_DONTNEED
            )
