"""Keeping the recorder's resident memory small and flat, without paying for it.

A batch makes and drops dozens of arrays of about a megabyte. If malloc maps each
anew, the page faults cost nine times the arithmetic (measured); if it keeps all
it ever freed, memory only grows. So malloc serves from one heap, and is told with
every segment to return what is free. And code and constants that only start-up or
sealing use stay mapped: the pages are the page cache's, shared and clean, so unmapping
them costs a minor fault for the few that are needed again.
"""

from __future__ import annotations

import ctypes
import gc
import re
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# mallopt(3): M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
_ONE_ARENA, _MMAP_THRESHOLD, _TRIM_THRESHOLD = (-8, 1), (-3, 32 << 20), (-1, 256 << 20)
_MADV_DONTNEED = 4
# A line of `maps` that names a file, and what smaps says of it (proc_pid_smaps(5)).
_MAPPING = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) (\S+) [0-9a-f]+ \S+ [1-9]\d* +(/[^\n]*)\n((?:[A-Z]\w+:[^\n]*\n)+)",
    re.MULTILINE,
)
_AMOUNT = re.compile(rb"^(Anonymous|Swap): +(\d+)", re.MULTILINE)

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


def settle() -> None:
    """Keep all that there is for good, so that no collection walks it.

    Importing leaves next to nothing to collect, and walking everything takes 25 ms.
    """
    gc.freeze()


def let_go(proc: Path = Path("/proc"), *, collect: bool = False) -> None:
    """Return free heap to the kernel, and unmap libraries until they are used again."""
    if collect:
        gc.collect()
        gc.freeze()  # what is left stays: the next collection need not walk it again
    trim()
    for address, size in _libraries.find_clean(proc):
        _libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), _MADV_DONTNEED)


class _Libraries:
    """The mappings of libraries, looked through again only when one came or went."""

    def __init__(self) -> None:
        self._code: list[bytes] = []
        self._clean: list[tuple[int, int]] = []

    def find_clean(self, proc: Path) -> list[tuple[int, int]]:
        try:
            maps = (proc / "self/maps").read_bytes()
            code = [line for line in maps.split(b"\n") if b" r-xp " in line]
            if code != self._code:
                self._clean = find_clean(parse_mappings((proc / "self/smaps").read_bytes()))
                self._code = code
        except OSError:  # a kernel may be built without smaps
            return []
        return self._clean


_libraries = _Libraries()


class MappedRange(NamedTuple):
    """A mapping of ours, as `/proc/self/smaps` has it."""

    address: int
    size: int
    rights: bytes
    file: bytes
    written: bool  # it has pages of its own, in memory or swapped out


def parse_mappings(content: bytes) -> list[MappedRange]:
    """Parse the mappings of files in `/proc/PID/smaps`."""
    found: list[MappedRange] = []
    for match in _MAPPING.finditer(content):
        start, end, rights, file, rest = match.groups()
        amounts = dict(_AMOUNT.findall(rest))
        written = amounts.get(b"Anonymous") != b"0" or amounts.get(b"Swap", b"0") != b"0"
        address = int(start, 16)
        found.append(MappedRange(address, int(end, 16) - address, rights, file, written))
    return found


def find_clean(mappings: Sequence[MappedRange]) -> list[tuple[int, int]]:
    """Return address and size of what libraries have mapped as it is in their files.

    Private pages that were written to would be lost: relocations are, also where the
    mapping can only be read since.
    """
    libraries = {each.file for each in mappings if each.rights == b"r-xp"}
    return [
        (each.address, each.size)
        for each in mappings
        if each.file in libraries and each.rights in (b"r-xp", b"r--p") and not each.written
    ]
