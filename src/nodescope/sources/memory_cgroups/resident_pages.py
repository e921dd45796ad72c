"""Who pays for the cached pages of a file: mincore → pagemap → kpagecgroup.

A file is mapped for reading and only pages that are cached already are looked at,
so that nothing is read from disk and nothing is charged anew. Pages are brought
into our page table by `MADV_POPULATE_READ` (v5.14), before that by reading them
through `/proc/self/mem`: both fail with an error where touching the mapping of a
file that was cut short meanwhile would kill us. Root only.
"""

from __future__ import annotations

import array
import ctypes
import errno
import os
from collections import Counter
from collections.abc import Iterator
from types import TracebackType

from nodescope.errors import source_error
from nodescope.sources.memory_cgroups.parents import PAGE_BYTES
from nodescope.sources.places import Places

_CACHESTAT = 451  # v6.5
_PROT_READ, _MAP_SHARED, _MADV_RANDOM, _MADV_POPULATE_READ = 1, 1, 1, 22
_WINDOW_BYTES = 64 << 20
_PRESENT, _FRAME_MASK = 1 << 63, (1 << 55) - 1
_ENTRIES_PER_BLOCK = 512
_MAX_BLOCKS = 16_384  # remembered: 64 MiB

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_MAP_FAILED = ctypes.c_void_p(-1).value


class _CacheStat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("cache", "dirty", "writeback", "evicted", "recently_evicted")]  # fmt: skip


class PageOwners:
    """Looks up who pays for a file's cached pages; keeps what it needs open."""

    def __init__(self, places: Places) -> None:
        self._descriptors: list[int] = []
        self._blocks: dict[int, array.array[int]] = {}
        self._has_cachestat = True
        self._populates = True
        self._owners = self._open(str(places.proc / "kpagecgroup"))
        # Our own mappings are described by our own /proc, wherever the host's is.
        self._pagemap = self._open("/proc/self/pagemap")
        self._memory = self._open("/proc/self/mem")

    def _open(self, path: str) -> int:
        try:
            self._descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            self.close()
            failure = source_error(path, error)
            failure.hint = "needs root, and a kernel with CONFIG_PROC_PAGE_MONITOR"
            raise failure from error
        return self._descriptors[-1]

    def pages_of(self, descriptor: int, size_bytes: int) -> Counter[int]:
        """Cached pages of an open file by the inode of the cgroup that pays."""
        pages: Counter[int] = Counter()
        if size_bytes and self._cached(descriptor) != 0:
            for offset in range(0, size_bytes, _WINDOW_BYTES):
                length = min(_WINDOW_BYTES, size_bytes - offset)
                self._add_window(descriptor, offset, length, pages)
        return pages

    def _cached(self, descriptor: int) -> int | None:
        """How many pages are cached; None if the kernel cannot say."""
        if not self._has_cachestat:
            return None
        whole = (ctypes.c_uint64 * 2)(0, 0)
        answer = _CacheStat()
        if _libc.syscall(_CACHESTAT, descriptor, whole, ctypes.byref(answer), 0) == 0:
            return int(answer.cache)
        if ctypes.get_errno() == errno.ENOSYS:
            self._has_cachestat = False
        return None

    def _add_window(self, descriptor: int, offset: int, length: int, pages: Counter[int]) -> None:
        address = _libc.mmap(None, length, _PROT_READ, _MAP_SHARED, descriptor, offset)
        if address == _MAP_FAILED:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        try:
            _libc.madvise(address, length, _MADV_RANDOM)  # read nothing ahead
            count = -(-length // PAGE_BYTES)
            residency = ctypes.create_string_buffer(count)
            if _libc.mincore(address, length, residency) != 0:
                return
            for first, number in find_runs(residency.raw[:count]):
                if self._bring_in(address + first * PAGE_BYTES, number):
                    for frame in self._frames(address // PAGE_BYTES + first, number):
                        pages[self._owner(frame)] += 1
        finally:
            _libc.munmap(address, length)

    def _bring_in(self, address: int, pages: int) -> bool:
        """Have pages in our page table; False if the file no longer reaches there."""
        if self._populates:
            if _libc.madvise(address, pages * PAGE_BYTES, _MADV_POPULATE_READ) == 0:
                return True
            if ctypes.get_errno() != errno.EINVAL:
                return False
            self._populates = False
        try:
            for page in range(pages):
                os.pread(self._memory, 1, address + page * PAGE_BYTES)
        except OSError:
            return False
        return True

    def _frames(self, page: int, count: int) -> Iterator[int]:
        entries = array.array("Q", os.pread(self._pagemap, count * 8, page * 8))
        for entry in entries:
            if entry & _PRESENT and entry & _FRAME_MASK:
                yield entry & _FRAME_MASK

    def _owner(self, frame: int) -> int:
        number, at = divmod(frame, _ENTRIES_PER_BLOCK)
        block = self._blocks.get(number)
        if block is None:
            if len(self._blocks) >= _MAX_BLOCKS:
                self._blocks.clear()
            size = _ENTRIES_PER_BLOCK * 8
            block = array.array("Q", os.pread(self._owners, size, number * size))
            self._blocks[number] = block
        return block[at] if at < len(block) else 0

    def close(self) -> None:
        """Give everything back."""
        while self._descriptors:
            os.close(self._descriptors.pop())

    def __enter__(self) -> PageOwners:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def find_runs(residency: bytes) -> Iterator[tuple[int, int]]:
    """Runs of pages that are cached: first, how many. Only the lowest bit counts."""
    flags = residency.translate(_LOWEST_BIT)
    first = flags.find(1)
    while first >= 0:
        end = flags.find(0, first)
        end = len(flags) if end < 0 else end
        yield first, end - first
        first = flags.find(1, end)


_LOWEST_BIT = bytes(value & 1 for value in range(256))
