"""Memory that sealing needs for a moment is given back, not kept.

A recorder lives for months in a fixed budget. Two allocators are involved:
Arrow's own (mimalloc) and, under numpy, glibc's; both can be asked.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa


def give_memory_back() -> None:
    """Return to the system what both allocators hold unused."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
