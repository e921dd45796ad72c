"""What was mapped a moment ago: found before samples are decoded, while its process may live.

Samples are decoded every few seconds, and many processes do not live that long. Rings are
emptied more often; each time the mappings are looked through, for files and for processes
not met before. As columns, because most processes map the same few files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.numbering import is_among
from nodescope.perf.decode import FORK, MMAP2, Chunk, join, text_at

_LOW = np.uint64(0xFFFFFFFF)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_VDSO = np.frombuffer(b"[vdso]\0\0", np.uint64)[0]


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A file that a process mapped to run it."""

    pid: int
    path: str
    device: tuple[int, int]
    inode: int


@dataclass(frozen=True, slots=True)
class MappedCode:
    """A process that mapped memory of no file to run it, as a JIT does."""

    pid: int
    time_ns: int  # when it first did, of what was looked through
    parent: int | None  # if it was born in what was looked through


@dataclass(frozen=True, slots=True)
class Mapped:
    """The mappings that were found."""

    files: list[MappedFile]
    code: list[MappedCode]  # the latest first: likeliest to live still


def find_mapped(chunks: Sequence[Chunk], met: set[int]) -> Mapped:
    """Files that are not in `met` yet, which takes them in, and processes that map code.

    Cheap enough to be asked every second: `met` are hashes of device and inode.
    """
    data, at, _ = join(chunks)
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    kind = words[at] & _LOW
    mapped = at[kind == MMAP2]
    mapped = mapped[mapped + 9 < len(words)]
    inode = words[mapped + 6]
    code = mapped[(inode == 0) & (words[mapped + 9] != _VDSO)]
    return Mapped(
        _find_files(data, words, mapped[inode != 0], met),
        _find_code(words, code, at[kind == FORK]) if len(code) else [],
    )


def _find_files(data: bytes, words: U64, at: I64, met: set[int]) -> list[MappedFile]:
    files = words[at + 5] * _MIX + words[at + 6]
    new = []
    for file in set(files.tolist()) - met:
        met.add(file)
        row = int(at[files == file][-1])  # the last to map it is the likeliest to live still
        device, inode = int(words[row + 5]), int(words[row + 6])
        path = text_at(data, (row + 9) << 3)
        pid = int(words[row + 1] & _LOW)
        new.append(MappedFile(pid, path, (device & 0xFFFFFFFF, device >> 32), inode))
    return new


def _find_code(words: U64, at: I64, forks: I64) -> list[MappedCode]:
    """Each process once; `at` are mapping records, `forks` those of births."""
    size = (words[at] >> np.uint64(48)).astype(np.int64) >> 3
    last = at + size - 1
    at, last = at[last < len(words)], last[last < len(words)]
    first: dict[int, int] = {}
    for pid, time_ns in zip((words[at + 1] & _LOW).tolist(), words[last].tolist(), strict=True):
        first[pid] = min(time_ns, first.get(pid, time_ns))
    forks = forks[forks + 1 < len(words)]
    child, parent = words[forks + 1] & _LOW, words[forks + 1] >> np.uint64(32)
    wanted = is_among(child, np.array(sorted(first), np.uint64)) & (child != parent)
    parents = dict(zip(child[wanted].tolist(), parent[wanted].tolist(), strict=True))
    found = [MappedCode(pid, time_ns, parents.get(pid)) for pid, time_ns in first.items()]
    return sorted(found, key=lambda each: -each.time_ns)
