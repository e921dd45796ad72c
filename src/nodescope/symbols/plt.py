"""Names for procedure linkage table stubs: `memcpy@plt`, as perf shows them.

A stub has no symbol. The i-th one jumps through the i-th relocation of
`.rela.plt`, whose symbol it is named after (System V psABI, "Procedure Linkage
Table"). Nothing is kept: three small reads find a name when it is needed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.symbols.elf import EM_AARCH64, EM_X86_64, SHT_DYNSYM, Elf, Section
from nodescope.symbols.file_bytes import read_name

STUB_BYTES = 16
_HEADER_BYTES = {EM_X86_64: 16, EM_AARCH64: 32}
_RELOCATION = struct.Struct("<QQq")
_SYMBOL_BYTES = 24


@dataclass(frozen=True, slots=True)
class PltStubs:
    """Runs of stubs as (address of the first, how many), all in relocation order."""

    elf: Elf
    runs: tuple[tuple[int, int], ...]
    relocations: Section
    symbols: Section
    strings: Section

    @property
    def nbytes(self) -> int:
        """Nothing is kept in memory."""
        return 0

    def lookup(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The relocation number of the stub at each address, or -1."""
        found = np.full(len(addresses), -1, np.int64)
        for first, count in self.runs:
            into = addresses - np.uint64(first)  # wraps far away when below
            inside = into < np.uint64(count * STUB_BYTES)
            found[inside] = (into[inside] // np.uint64(STUB_BYTES)).astype(np.int64)
        return found

    def start(self, row: int) -> int:
        """The address of the stub in the first run."""
        return self.runs[0][0] + row * STUB_BYTES

    def name(self, row: int) -> str:
        """`symbol@plt`; just `@plt` where the relocation has no symbol."""
        source = self.elf.source
        at = self.relocations.offset + row * _RELOCATION.size
        _, info, _ = _RELOCATION.unpack(source.read_at(at, _RELOCATION.size))
        symbol = info >> 32
        if not symbol or symbol >= self.symbols.size // _SYMBOL_BYTES:
            return "@plt"
        raw = source.read_at(self.symbols.offset + symbol * _SYMBOL_BYTES, 4)
        name = self.strings.offset + int.from_bytes(raw, "little")
        return read_name(source, name, self.strings.offset + self.strings.size) + "@plt"


def find_plt_stubs(elf: Elf) -> PltStubs | None:
    """The stubs of a dynamically linked image, on machines whose layout we know."""
    header_bytes = _HEADER_BYTES.get(elf.machine)
    relocations = elf.section(".rela.plt")
    symbols = elf.section_of_type(SHT_DYNSYM)
    if header_bytes is None or relocations is None or symbols is None:
        return None
    if symbols.link >= len(elf.sections):
        return None
    count = relocations.size // _RELOCATION.size
    runs = []
    # With control-flow enforcement the stubs that run are those of .plt.sec,
    # which has no header.
    for name, skip in ((".plt", header_bytes), (".plt.sec", 0)):
        section = elf.section(name)
        if section is not None and section.size > skip:
            stubs = min(count, (section.size - skip) // STUB_BYTES)
            runs.append((section.address + skip, stubs))
    if not runs:
        return None
    return PltStubs(elf, tuple(runs), relocations, symbols, elf.sections[symbols.link])
