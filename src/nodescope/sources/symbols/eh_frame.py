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

from nodescope.sources.symbols.elf import PT_GNU_EH_FRAME, Elf
from nodescope.sources.symbols.file_bytes import MAX_READ_BYTES
from nodescope.sources.symbols.unresolved import Reason, Unresolvable

MAX_FRAMES = 1_000_000

_ENTRY_BYTES = 8
_UDATA4, _SDATA4 = 0x03, 0x0B
_DATAREL_SDATA4 = 0x3B
_POINTER_BYTES = {0x1B: 4, 0x3B: 4, 0x03: 4, 0x0B: 4, 0x04: 8, 0x0C: 8, 0x00: 8}


@dataclass(frozen=True, slots=True)
class FunctionStarts:
    """Sorted starts, as signed distances from the table itself."""

    base: int
    starts: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """What the array costs."""
        return self.starts.nbytes

    def start_of(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The start of the function each address falls into; the address itself if none."""
        distance = (addresses - np.uint64(self.base)).view(np.int64)
        near = np.abs(distance) < 1 << 31
        # As narrow as the starts are: else all of them would be made wide, in every call.
        rows = self.starts.searchsorted(np.where(near, distance, 0).astype(np.int32), "right") - 1
        inside = near & (rows >= 0)
        starts = self.starts[np.maximum(rows, 0)].astype(np.int64).view(np.uint64)
        return np.where(inside, starts + np.uint64(self.base), addresses)


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
    starts = _read_starts(elf, offset + at + 4, count)
    if not count:
        return None
    if (starts[1:] < starts[:-1]).any():
        starts.sort()  # only a hostile file is unsorted; sorting keeps lookups defined
    return FunctionStarts(address, starts)


def _find_table(elf: Elf) -> tuple[int, int, int] | None:
    for segment in elf.segments:
        if segment.type == PT_GNU_EH_FRAME and segment.file_size:
            return segment.offset, segment.file_size, segment.address
    section = elf.section(".eh_frame_hdr")
    return (section.offset, section.size, section.address) if section else None


def _read_starts(elf: Elf, offset: int, count: int) -> NDArray[np.int32]:
    starts = np.empty(count if offset + count * _ENTRY_BYTES <= elf.source.size else 0, np.int32)
    step = MAX_READ_BYTES // _ENTRY_BYTES
    for first in range(0, count, step):
        length = min(step, count - first)
        raw = elf.source.read_at(offset + first * _ENTRY_BYTES, length * _ENTRY_BYTES)
        starts[first : first + length] = np.frombuffer(raw, "<i4")[::2]
    return starts
