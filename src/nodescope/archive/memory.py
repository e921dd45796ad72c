"""Memory that sealing needs for a moment is given back; what a view needs is kept.

A recorder lives for months in a fixed budget. A view reads segment after segment and
ends: a third of its time went into getting pages from the kernel again and again. Two
allocators are involved: Arrow's own (mimalloc) and, under numpy, glibc's; both can be
asked. What lives long takes from glibc's alone.
"""

from __future__ import annotations

import ctypes
import gc
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # mallopt(3)
_LARGEST = 32 << 20  # glibc takes no larger threshold; larger arrays are few
_OBJECTS = 100_000  # made since Python last looked for garbage; a large answer is as many


def give_memory_back() -> None:
    """Return to the system what both allocators hold unused."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def share_heap() -> None:
    """Have threads share one heap, and arrays made in what earlier ones left of it.

    A heap of each thread's own would hold what that thread once needed. What is free
    is given back by `give_memory_back`, after the work rather than during it.
    """
    choose = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if choose is not None:
        choose(_ARENA_MAX, 1)
        choose(_MMAP_THRESHOLD, _LARGEST)
        choose(_TRIM_THRESHOLD, 64 << 20)


def use_one_allocator() -> None:
    """Have Arrow take its memory from glibc's heap, for a process that lives long.

    Its own allocator holds 18 MB for half a megabyte of tables while a segment of two
    cores is sealed, and never gives back all of it (measured). To be called before
    anything imports Arrow: what is chosen later (`set_memory_pool`) is not heard of by
    its Parquet writer.
    """
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"


def keep_memory() -> None:
    """Have arrays made in memory that earlier ones left; for a process that ends soon."""
    gc.set_threshold(_OBJECTS)
    choose = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if choose is not None:
        choose(_MMAP_THRESHOLD, _LARGEST)
        choose(_TRIM_THRESHOLD, 1 << 30)
