"""File offsets to virtual addresses and back, through an image's PT_LOAD segments.

A sample's address becomes a file offset by the process's mapping; symbol
tables speak virtual addresses. Going through the segment makes PIE and
non-PIE, prelinked and oddly aligned images all the same case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.symbols.elf import PF_X, PT_LOAD, Elf

NOWHERE = (1 << 64) - 1
"""The address of an offset that no segment maps."""

_PAGE = 4096
_MASK = NOWHERE


@dataclass(frozen=True, slots=True)
class AddressMap:
    """Executable segments as (first file offset, last + 1, address minus offset)."""

    ranges: tuple[tuple[int, int, int], ...]

    def addresses(self, file_offsets: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The virtual address of each file offset, `NOWHERE` if unmapped."""
        result = np.full(len(file_offsets), NOWHERE, np.uint64)
        for first, last, delta in self.ranges:
            inside = (file_offsets >= np.uint64(first)) & (file_offsets < np.uint64(last))
            # uint64 arithmetic wraps, which is what a negative delta needs.
            result[inside] = file_offsets[inside] + np.uint64(delta)
        return result

    def file_offset(self, address: int) -> int | None:
        """The file offset of a virtual address."""
        for first, last, delta in self.ranges:
            offset = (address - delta) & _MASK
            if first <= offset < last:
                return offset
        return None


def make_address_map(elf: Elf) -> AddressMap:
    """Where this image's code lives; mappings are whole pages, so ranges are too."""
    loads = [s for s in elf.segments if s.type == PT_LOAD and s.file_size]
    code = [s for s in loads if s.flags & PF_X] or loads
    return AddressMap(
        tuple(
            (
                s.offset & ~(_PAGE - 1),
                min((s.offset + s.file_size + _PAGE - 1) & ~(_PAGE - 1), _MASK),
                (s.address - s.offset) & _MASK,
            )
            for s in code
        )
    )
