"""Address spaces: which file, and which place in it, an address was.

An `Image` is immutable, so that a forked child shares its parent's until one of
them maps something new. All spaces of a batch are searched at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from nodescope.sources.perf.decode import I64, U64

I32 = npt.NDArray[np.int32]

_USER_END = np.uint64(1 << 47)  # above: the kernel, garbage, or LA57 on request, which is rare


@dataclass(frozen=True, slots=True)
class Module:
    """A mapped file, or an anonymous mapping, as one process saw it."""

    pid: int
    path: str
    device: tuple[int, int]
    inode: int

    @property
    def anonymous(self) -> bool:
        """Code that is in no file: a JIT's, most often."""
        return self.path in ("", "//anon", "[heap]", "[stack]", "[uprobes]") or (
            self.path.startswith("[anon") or self.path.startswith("/dev/zero")
        )


@dataclass(frozen=True, slots=True)
class Image:
    """The executable mappings of an address space, sorted by start."""

    start: U64
    end: U64
    offset: U64
    module: I32
    serial: int = field(default_factory=itertools.count(1).__next__)

    def part(self, rows: slice | npt.NDArray[np.bool_]) -> Image:
        """Some of its mappings, as an image of their own."""
        return Image(self.start[rows], self.end[rows], self.offset[rows], self.module[rows])

    def with_mappings(self, other: Image) -> Image:
        """This image after more was mapped into it; what it covered is gone."""
        keep = np.ones(len(self.start), bool)
        for start, end in zip(other.start.tolist(), other.end.tolist(), strict=True):
            keep &= (self.start >= end) | (self.start < start)
        start = np.concatenate((self.start[keep], other.start))
        order = np.argsort(start, kind="stable")
        return Image(
            start[order],
            np.concatenate((self.end[keep], other.end))[order],
            np.concatenate((self.offset[keep], other.offset))[order],
            np.concatenate((self.module[keep], other.module))[order],
        )


@dataclass(frozen=True, slots=True)
class AddressSpaces:
    """The address spaces of one batch, by number: first those made in it, as rows.

    Those that lasted from before follow as images, from number `made` on.
    """

    made: int
    number: I64
    rows: Image  # the mappings of all made in this batch, sorted by number and start
    lasting: list[Image]

    def locate(self, number: I64, address: U64) -> tuple[I32, U64]:
        """The module (-1: none) and the offset in its file of each address."""
        parts = [(self.number, self.rows)]
        asked = np.zeros(self.made + len(self.lasting) + 1, bool)  # the last: none, which is -1
        asked[number] = True
        for old in (np.flatnonzero(asked[self.made : -1]) + self.made).tolist():
            image = self.lasting[old - self.made]
            parts.append((np.full(len(image.start), old, np.int64), image))
        keys = np.concatenate([_space_key(numbers, image.start) for numbers, image in parts])
        module = np.full(len(address), -1, np.int32)
        offset = np.zeros(len(address), np.uint64)
        if not len(keys):
            return module, offset
        row = np.searchsorted(keys, _space_key(number, address), "right") - 1
        start, end, file_offset, modules = (
            np.concatenate([getattr(image, name) for _, image in parts])
            for name in ("start", "end", "offset", "module")
        )
        owner = np.concatenate([numbers for numbers, _ in parts])
        inside = (row >= 0) & (number >= 0) & (owner[row] == number) & (address < end[row])
        inside &= address < _USER_END
        row = row[inside]
        module[inside] = modules[row]
        offset[inside] = address[inside] - start[row] + file_offset[row]
        return module, offset


def _space_key(number: I64, address: U64) -> U64:
    clipped = np.minimum(address, _USER_END)
    return (number.astype(np.uint64) << np.uint64(48)) | clipped
