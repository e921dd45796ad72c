"""Which cgroup pays for which physical page: `/proc/kpagecgroup` beside `/proc/kpageflags`.

The kernel names the closest ancestor that is not dying (page_cgroup_ino in
mm/memcontrol.c), never the dying cgroup itself: pages under the inode of P less
those P has itself are held by dying children of P. Root only. A whole scan of
24 GiB takes about a second; one block of 2 MiB in sixteen a tenth of that.
Documentation/admin-guide/mm/pagemap.rst.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.arrays import U64
from nodescope.errors import SourceDenied, SourceError, source_error
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy
from nodescope.sources.memory_cgroups.parents import PAGE_BYTES
from nodescope.sources.places import Places

_BLOCK_PAGES = 512
_WHOLE_PAGES = 1 << 17  # at once, when nothing is left out
_ENTRY_BYTES = 8
_KIND_BITS = 3
KINDS = ("other", "anon", "shmem", "file", "slab", "page_tables")
# Bits of /proc/kpageflags: include/uapi/linux/kernel-page-flags.h.
_LRU, _SLAB, _ANON, _SWAP_BACKED, _PAGE_TABLE = 5, 7, 12, 14, 26


@dataclass(frozen=True, slots=True)
class PageScan:
    """Bytes by inode of a cgroup's directory and kind, extrapolated where sampled."""

    one_in: int
    pages: int  # looked at
    bytes_of: dict[int, dict[str, int]]


def scan_pages(places: Places, one_in: int = 1) -> PageScan:
    """Scan memory, all of it or one block in `one_in`."""
    ranges = parse_ram(read_file(str(places.proc / "iomem")))
    if not ranges:
        raise SourceDenied(
            places.proc / "iomem", "shows no addresses", hint="needs root (CAP_SYS_ADMIN)"
        )
    totals: dict[int, int] = {}
    seen = 0
    with (
        _Entries(places.proc / "kpagecgroup") as owners,
        _Entries(places.proc / "kpageflags") as flags,
    ):
        for first, count in _blocks(ranges, one_in):
            owned = owners.read(first, count)
            seen += len(owned)
            at = np.flatnonzero(owned)
            if len(at):
                kinds = classify(flags.read(first, count)[at])
                keys = (owned[at] << np.uint64(_KIND_BITS)) | kinds
                for key, number in zip(*np.unique(keys, return_counts=True), strict=True):
                    totals[int(key)] = totals.get(int(key), 0) + int(number)
    bytes_of: dict[int, dict[str, int]] = {}
    for key, number in totals.items():
        kinds_of = bytes_of.setdefault(key >> _KIND_BITS, {})
        kinds_of[KINDS[key & (1 << _KIND_BITS) - 1]] = number * one_in * PAGE_BYTES
    return PageScan(one_in, seen, bytes_of)


def name_pages(hierarchy: MemoryHierarchy, scan: PageScan) -> dict[str, dict[str, int]]:
    """The same by the path of the cgroup; an inode without a directory is left out."""
    from nodescope.sources.cgroups.hierarchies import walk

    return {
        path: scan.bytes_of[inode]
        for path, inode in walk(hierarchy.mount)
        if inode in scan.bytes_of
    }


def parse_ram(iomem: bytes) -> list[tuple[int, int]]:
    """Ranges of page numbers, the end excluded; none if addresses are hidden."""
    ranges = []
    for line in iomem.splitlines():
        where, _, what = line.partition(b" : ")
        if what == b"System RAM" and not where.startswith(b" "):
            first, _, last = where.partition(b"-")
            start, end = int(first, 16), int(last, 16) + 1
            if end > 1:
                ranges.append((-(-start // PAGE_BYTES), end // PAGE_BYTES))
    return ranges


def classify(flags: U64) -> U64:
    """Return the kind of each page, as its number in `KINDS`."""

    def has(bit: int) -> npt.NDArray[np.bool_]:
        result: npt.NDArray[np.bool_] = (flags >> np.uint64(bit)) & np.uint64(1) != 0
        return result

    anon, swap_backed = has(_ANON), has(_SWAP_BACKED)
    kinds = np.zeros(len(flags), np.uint64)
    kinds[has(_LRU) & ~anon & ~swap_backed] = KINDS.index("file")
    kinds[swap_backed & ~anon] = KINDS.index("shmem")
    kinds[anon] = KINDS.index("anon")
    kinds[has(_SLAB)] = KINDS.index("slab")
    kinds[has(_PAGE_TABLE)] = KINDS.index("page_tables")
    return kinds


def _blocks(ranges: list[tuple[int, int]], one_in: int) -> Iterator[tuple[int, int]]:
    # The same blocks each time: two scans of a node that stands still agree.
    chosen = random.Random(1)
    step = _BLOCK_PAGES if one_in > 1 else _WHOLE_PAGES
    for start, end in ranges:
        for first in range(start, end, step):
            if one_in == 1 or chosen.randrange(one_in) == 0:
                yield first, min(step, end - first)


class _Entries:
    """A file of the kernel with eight bytes per page."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise source_error(path, error) from error

    def read(self, first: int, count: int) -> U64:
        """Entries of consecutive pages; those that could not be read are 0."""
        entries = np.zeros(count, np.uint64)
        try:
            os.preadv(self._descriptor, [entries.data], first * _ENTRY_BYTES)
        except OSError as error:
            raise SourceError(self._path, error.strerror or str(error)) from error
        return entries

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
