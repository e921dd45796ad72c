"""Memory that sealing needs for a moment is given back, not kept.

A recorder lives for months in a fixed budget. Two allocators are involved:
Arrow's own (mimalloc), which can be asked, and glibc's under numpy, which
learns from the first large array it frees to keep such arrays for later.
Measured over 30 sealings of 23,000 samples: flat from the first one on.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

_M_MMAP_THRESHOLD = -3  # malloc.h
_LARGE_BYTES = 256 << 10


def return_large_blocks() -> None:
    """Have glibc map large arrays on their own, so that freeing one returns it at once.

    Holds for the whole process; other C libraries do not know it, or need it.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_memory_back() -> None:
    """Return to the system what both allocators hold unused."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
