"""Function boundaries of stripped binaries, from `.eh_frame_hdr`.

The unwinder's binary search table (LSB core, "Exception Frames") survives
stripping and lists where every function with unwind data begins. It has no
names, but it lets all addresses of one function share one: "+0x<file offset>".
Only the encoding every linker writes is read: 32-bit, relative to the table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.numbering import distinct
from nodescope.symbols.elf import PT_GNU_EH_FRAME, Elf
from nodescope.symbols.file_bytes import MAX_READ_BYTES, ByteSource
from nodescope.symbols.unresolved import Reason, Unresolvable

MAX_FRAMES = 1_000_000

_ENTRY_BYTES = 8
_BLOCK = 64  # entries: one read of half a kilobyte
_UDATA4, _SDATA4 = 0x03, 0x0B
_DATAREL_SDATA4 = 0x3B
_POINTER_BYTES = {0x1B: 4, 0x3B: 4, 0x03: 4, 0x0B: 4, 0x04: 8, 0x0C: 8, 0x00: 8}


@dataclass(frozen=True, slots=True)
class FunctionStarts:
    """Where functions begin, as signed distances from the table itself.

    The first of each block is kept; the others are read when one is asked for, which is
    rare: who asks remembers the answer. All of them would be a quarter of a megabyte for
    a large binary of which one function was seen.
    """

    base: int
    firsts: NDArray[np.int32]
    count: int
    source: ByteSource
    offset: int

    @property
    def nbytes(self) -> int:
        """Return the memory of what is kept."""
        return self.firsts.nbytes

    def start_of(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The start of the function each address falls into; the address itself if none.

        Raises `Unresolvable` where the file can no longer be read.
        """
        distance = (addresses - np.uint64(self.base)).view(np.int64)
        near = np.abs(distance) < 1 << 31
        # As narrow as the starts are: else all of them would be made wide, in every call.
        sought = np.where(near, distance, 0).astype(np.int32)
        blocks = self.firsts.searchsorted(sought, "right") - 1
        blocks[~near] = -1
        found = addresses.copy()
        for block in distinct(blocks[blocks >= 0]).tolist():
            mine = np.flatnonzero(blocks == block)
            starts = self._read_block(block)
            rows = starts.searchsorted(sought[mine], "right") - 1
            found[mine] = starts[rows].astype(np.int64).view(np.uint64) + np.uint64(self.base)
        return found

    def _read_block(self, block: int) -> NDArray[np.int32]:
        first = block * _BLOCK
        length = min(_BLOCK, self.count - first)
        return _read_entries(self.source, self.offset + first * _ENTRY_BYTES, length)


def read_function_starts(elf: Elf) -> FunctionStarts | None:
    """The table of `elf`, or None when it has none; raises `Unresolvable`."""
    place = _find_table(elf)
    if place is None:
        return None
    offset, size, address = place
    header = elf.source.read_at(offset, 4)
    version, frame_encoding, count_encoding, table_encoding = header
    pointer_bytes = _POINTER_BYTES.get(frame_encoding)
    if version != 1 or pointer_bytes is None:
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "eh_frame_hdr")
    if count_encoding not in (_UDATA4, _SDATA4) or table_encoding != _DATAREL_SDATA4:
        return None  # a linker that writes no search table
    at = 4 + pointer_bytes
    count = int.from_bytes(elf.source.read_at(offset + at, 4), "little")
    if count > MAX_FRAMES:
        raise Unresolvable(elf.source.label, Reason.TOO_LARGE, f"{count} frames")
    if at + 4 + count * _ENTRY_BYTES > size:
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "eh_frame_hdr count")
    if not count:
        return None
    table = offset + at + 4
    return FunctionStarts(address, _read_firsts(elf, table, count), count, elf.source, table)


def _find_table(elf: Elf) -> tuple[int, int, int] | None:
    for segment in elf.segments:
        if segment.type == PT_GNU_EH_FRAME and segment.file_size:
            return segment.offset, segment.file_size, segment.address
    section = elf.section(".eh_frame_hdr")
    return (section.offset, section.size, section.address) if section else None


def _read_firsts(elf: Elf, offset: int, count: int) -> NDArray[np.int32]:
    """The first of every block of a table that is in order, as linkers write it."""
    step = MAX_READ_BYTES // _ENTRY_BYTES  # a multiple of a block
    firsts = []
    before = np.iinfo(np.int32).min
    for first in range(0, count, step):
        length = min(step, count - first)
        starts = _read_entries(elf.source, offset + first * _ENTRY_BYTES, length)
        if starts[0] < before or (starts[1:] < starts[:-1]).any():
            raise Unresolvable(elf.source.label, Reason.MALFORMED, "eh_frame_hdr order")
        before = starts[-1]
        firsts.append(starts[::_BLOCK].copy())
    return np.concatenate(firsts)


def _read_entries(source: ByteSource, offset: int, count: int) -> NDArray[np.int32]:
    return np.frombuffer(source.read_at(offset, count * _ENTRY_BYTES), "<i4")[::2]
