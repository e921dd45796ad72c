"""Address spaces: which file, and which place in it, an address was.

An `MappedImage` is immutable, so that a forked child shares its parent's until one of
them maps something new. All spaces of a batch are searched at once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from nodescope.arrays import I32, I64, U64
from nodescope.numbering import distinct

_MAX_LEFT = 6  # programs executed one after the other, or forked, before any maps its own
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
class MappedImage:
    """The executable mappings of an address space, sorted by start.

    `left` is what was mapped before a new program took its place: until that has
    mapped its own, a thread's user frame is still where it called `execve`.
    """

    start: U64
    end: U64
    offset: U64
    module: I32
    since: I64  # when it was mapped; 0 if before it was known
    left: MappedImage | None = None
    latest_ns: int = 0  # when the last of them was mapped
    serial: int = field(default_factory=itertools.count(1).__next__)

    def part(
        self, rows: slice | npt.NDArray[np.bool_], left: MappedImage | None = None
    ) -> MappedImage:
        """Some of its mappings, as an image of their own."""
        since = self.since[rows]
        return MappedImage(
            self.start[rows],
            self.end[rows],
            self.offset[rows],
            self.module[rows],
            since,
            left and replace(left, left=left.left and replace(left.left, left=None)),
            int(since.max(initial=0)),
        )

    def with_mappings(self, other: MappedImage) -> MappedImage:
        """This image after more was mapped into it; what that covers is left."""
        keep = np.ones(len(self.start), bool)
        for start, end in zip(other.start.tolist(), other.end.tolist(), strict=True):
            keep &= (self.start >= end) | (self.start < start)
        start = np.concatenate((self.start[keep], other.start))
        order = np.argsort(start, kind="stable")
        return MappedImage(
            start[order],
            np.concatenate((self.end[keep], other.end))[order],
            np.concatenate((self.offset[keep], other.offset))[order],
            np.concatenate((self.module[keep], other.module))[order],
            np.concatenate((self.since[keep], other.since))[order],
            self.left if keep.all() else replace(self, left=None),
            max(self.latest_ns, int(other.since.max(initial=0))),
        )


class AddressSpaces:
    """The address spaces of one batch, by number: first those made in it, as rows.

    Those that lasted from before follow as images, from number `made` on; -1 is
    none. A mapping counts from its time on; where a space had none yet at an
    address, the one it came from tells (`before`).
    """

    def __init__(
        self, made: int, number: I64, rows: MappedImage, lasting: list[MappedImage], before: I64
    ) -> None:
        """`rows` are the mappings of all made in this batch, sorted by `number` and start."""
        self.made = made
        self.lasting = list(lasting)
        self._number = number
        self._rows = rows
        self._before = np.full(made + 3 * len(lasting) + 1, -1, np.int64)
        self._before[:made] = before
        place = 0
        while place < len(self.lasting):
            left = self.lasting[place].left
            if left is not None:
                self._before[made + place] = made + len(self.lasting)
                self.lasting.append(left)
            place += 1

    def locate(self, number: I64, address: U64, time_ns: I64) -> tuple[I32, U64]:
        """The module (-1: none) and the offset in its file of each address at a time."""
        module, offset = self._locate_now(number, address, time_ns)
        open_rows = np.flatnonzero(module < 0)
        number = number[open_rows]
        for _ in range(_MAX_LEFT - 1):
            number = self._before[number]
            open_rows, number = open_rows[number >= 0], number[number >= 0]
            if not len(open_rows):
                break
            found, place = self._locate_now(number, address[open_rows], time_ns[open_rows])
            module[open_rows], offset[open_rows] = found, place
            open_rows, number = open_rows[found < 0], number[found < 0]
        return module, offset

    def count_later(self, number: I64, time_ns: I64) -> I64:
        """How many mappings a space had not yet at a time: 0 for nearly all."""
        count = np.zeros(len(number), np.int64)
        first_ns = int(time_ns.min(initial=1 << 62))
        late = np.flatnonzero(self._rows.since > first_ns)
        parts = [(self._number[late], self._rows.since[late])]
        for place, image in enumerate(self.lasting, self.made):
            if image.latest_ns > first_ns:
                parts.append((np.full(len(image.since), place, np.int64), image.since))
        owner = np.concatenate([numbers for numbers, _ in parts])
        touched = np.zeros(self.made + len(self.lasting) + 1, bool)
        touched[owner] = True
        rows = np.flatnonzero(touched[number])
        if len(rows):
            since = np.concatenate([times for _, times in parts])
            moments = distinct(since)
            step = len(moments) + 1
            keys = np.sort(owner * step + np.searchsorted(moments, since))
            passed = np.searchsorted(moments, time_ns[rows], "right")
            count[rows] = np.searchsorted(keys, (number[rows] + 1) * step)
            count[rows] -= np.searchsorted(keys, number[rows] * step + passed)
        return count

    def _locate_now(self, number: I64, address: U64, time_ns: I64) -> tuple[I32, U64]:
        asked = np.zeros(self.made + len(self.lasting) + 1, bool)  # the last: none, which is -1
        asked[number] = True
        old = asked[self.made : -1].nonzero()[0]
        images = [self.lasting[place] for place in old.tolist()]
        sizes = [len(image.start) for image in images]
        images.insert(0, self._rows)
        owner = np.concatenate((self._number, (old + self.made).repeat(sizes)))
        if not len(owner):
            return np.full(len(address), -1, np.int32), np.zeros(len(address), np.uint64)
        start, end, file_offset, modules, since = (
            np.concatenate([getattr(image, name) for image in images])
            for name in ("start", "end", "offset", "module", "since")
        )
        row = _space_key(owner, start).searchsorted(_space_key(number, address), "right")
        row -= 1
        inside = (owner.take(row, mode="wrap") == number) & (row >= 0)
        inside &= (address < end.take(row, mode="wrap")) & (address < _USER_END)
        if len(time_ns) and since.max() > time_ns.min():
            inside &= since.take(row, mode="wrap") <= time_ns
        module = np.where(inside, modules.take(row, mode="wrap"), np.int32(-1))
        shift = file_offset - start  # wraps, and so does the sum
        offset = np.where(inside, address + shift.take(row, mode="wrap"), np.uint64(0))
        return module, offset


def _space_key(number: I64, address: U64) -> U64:
    clipped = np.minimum(address, _USER_END)
    return (number.astype(np.uint64) << np.uint64(48)) | clipped
