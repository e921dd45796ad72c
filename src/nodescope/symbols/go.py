"""Function names of Go binaries, from the runtime's own pclntab.

Release builds of kubelet and friends carry no `.symtab`, but the Go runtime
needs the name of every function at run time, so the table is always there.
Layouts by magic (src/runtime/symtab.go, src/cmd/link/internal/ld/pcln.go):

==========  =====  ==========================================================
0xfffffffb  1.2    functab of pointer pairs right after the 8-byte header
0xfffffffa  1.16   header lists regions; functab of pointer pairs
0xfffffff0  1.18   functab of uint32 pairs, relative to textStart
0xfffffff1  1.20   as 1.18 (`_func` grew); from 1.26 textStart is always 0
==========  =====  ==========================================================

Where the header has no textStart (PIE, 1.26 and later) it comes from
moduledata's `text` (section `.go.module`), else from `.text`.
Only starts and `_func` offsets are kept: 8 bytes per function.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.symbols.elf import PF_X, PT_LOAD, Elf
from nodescope.symbols.file_bytes import MAX_READ_BYTES, ByteSource, read_name
from nodescope.symbols.unresolved import Reason, Unresolvable

MAX_FUNCTIONS = 1_000_000
MAX_SCAN_BYTES = 64 << 20
"""Without a section name, how much read-only data is searched for the magic."""

_MAGICS = {0xFFFFFFFB: 2, 0xFFFFFFFA: 16, 0xFFFFFFF0: 18, 0xFFFFFFF1: 20}
_SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
_MODULE_SECTION = ".go.module"
_MODULE_TEXT_OFFSET = 22 * 8
_UINT32_MAX = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class GoFunctions:
    """Sorted Go functions; the last start is the end of Go's code."""

    base: int
    starts: NDArray[np.uint32]
    functions: NDArray[np.uint32]
    source: ByteSource
    functions_offset: int
    entry_bytes: int
    names_offset: int
    end: int

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays."""
        return self.starts.nbytes + self.functions.nbytes

    def lookup(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The row whose function covers each address, or -1."""
        relative = addresses - np.uint64(self.base)
        near = relative <= np.uint64(_UINT32_MAX)
        offsets = np.where(near, relative, 0).astype(np.uint32)
        rows = np.searchsorted(self.starts, offsets, side="right").astype(np.int64) - 1
        rows[~near | (rows >= len(self.functions))] = -1
        return rows

    def start(self, row: int) -> int:
        """The virtual address where the function begins."""
        return self.base + int(self.starts[row])

    def name(self, row: int) -> str:
        """The function's name as Go spells it; may raise `Unresolvable`."""
        at = self.functions_offset + int(self.functions[row]) + self.entry_bytes
        name = int.from_bytes(self.source.read_at(at, 4), "little")
        return read_name(self.source, self.names_offset + name, self.end)


def read_go_functions(elf: Elf) -> GoFunctions | None:
    """The pclntab of `elf`, None if it is not a Go binary; raises `Unresolvable`."""
    place = _find_table(elf)
    if place is None:
        return None
    offset, size = place
    header = elf.source.read_up_to(offset, 72)
    if len(header) < 72:
        raise Unresolvable(elf.source.label, Reason.TRUNCATED, "pclntab")
    magic, pad, quantum, pointer_bytes = struct.unpack_from("<IHBB", header)
    version = _MAGICS.get(magic)
    if version is None or pad or quantum not in (1, 2, 4) or pointer_bytes != 8:
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "pclntab header")
    words = struct.unpack_from("<8Q", header, 8)
    count = words[0]
    if count > MAX_FUNCTIONS:
        raise Unresolvable(elf.source.label, Reason.TOO_LARGE, f"{count} Go functions")
    if version == 2:
        functions, names, table, text = 0, 0, 16, 0
    elif version == 16:
        functions, names, table, text = words[6], words[2], words[6], 0
    else:
        functions, names, table = words[7], words[3], words[7]
        text = words[2] or _find_text(elf)
    if max(functions, names, table) >= size:
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "pclntab regions")
    entry_bytes = 8 if version < 18 else 4
    base, starts, offsets = _read_functab(elf, offset + table, count, entry_bytes, text)
    return GoFunctions(
        base, starts, offsets, elf.source, offset + functions, entry_bytes, offset + names,
        offset + size,
    )  # fmt: skip


def _read_functab(
    elf: Elf, offset: int, count: int, entry_bytes: int, text: int
) -> tuple[int, NDArray[np.uint32], NDArray[np.uint32]]:
    """Starts (one more than functions: the end) and `_func` offsets."""
    entry = np.dtype([("start", f"<u{entry_bytes}"), ("function", f"<u{entry_bytes}")])
    if offset + count * entry.itemsize + entry_bytes > elf.source.size:
        raise Unresolvable(elf.source.label, Reason.TRUNCATED, "pclntab functions")
    starts = np.empty(count + 1, np.uint32)
    functions = np.empty(count, np.uint32)
    base = text
    step = MAX_READ_BYTES // entry.itemsize
    for first in range(0, count, step):
        length = min(step, count - first)
        raw = elf.source.read_at(offset + first * entry.itemsize, length * entry.itemsize)
        rows = np.frombuffer(raw, entry)
        if entry_bytes == 8 and first == 0:
            base = int(rows["start"][0])
        absolute = rows["start"] - np.uint64(base) if entry_bytes == 8 else rows["start"]
        starts[first : first + length] = np.minimum(absolute, _UINT32_MAX)
        functions[first : first + length] = np.minimum(rows["function"], _UINT32_MAX)
    last = elf.source.read_at(offset + count * entry.itemsize, entry_bytes)
    end = int.from_bytes(last, "little") - (base if entry_bytes == 8 else 0)
    starts[count] = min(max(end, 0), _UINT32_MAX)
    if (starts[1:] < starts[:-1]).any():
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "pclntab is not sorted")
    return base, starts, functions


def _find_text(elf: Elf) -> int:
    """Where Go's code begins, when the header does not say."""
    module = elf.section(_MODULE_SECTION)
    if module is not None and module.size >= _MODULE_TEXT_OFFSET + 8:
        raw = elf.source.read_at(module.offset + _MODULE_TEXT_OFFSET, 8)
        text = int.from_bytes(raw, "little")
        if text:
            return text
    section = elf.section(".text")
    if section is None:
        raise Unresolvable(elf.source.label, Reason.NO_SYMBOLS, "Go text start unknown")
    return section.address


def _find_table(elf: Elf) -> tuple[int, int] | None:
    section = elf.section(*_SECTIONS)
    if section is not None:
        return section.offset, min(section.size, elf.source.size - section.offset)
    # External linking folds the table into a larger section; only binaries
    # that say they are Go are worth searching.
    is_go = elf.section(".go.buildinfo", ".note.go.buildid") is not None
    return _scan_for_table(elf) if is_go or not elf.sections else None


def _scan_for_table(elf: Elf) -> tuple[int, int] | None:
    """Search read-only segments for a header, at pointer-aligned places."""
    budget = MAX_SCAN_BYTES
    signatures = tuple(struct.pack("<IH", magic, 0) for magic in _MAGICS)
    for segment in elf.segments:
        if segment.type != PT_LOAD or segment.flags & PF_X:
            continue
        end = min(segment.offset + segment.file_size, elf.source.size)
        position = segment.offset
        while position < end and budget > 0:
            data = elf.source.read_up_to(position, min(MAX_READ_BYTES, end - position))
            if len(data) < 16:
                break
            found = _find_signature(data, signatures)
            if found is not None:
                return position + found, end - position - found
            budget -= len(data)
            position += max(len(data) - 16 & ~7, 8)
    return None


def _find_signature(data: bytes, signatures: tuple[bytes, ...]) -> int | None:
    hits = []
    for signature in signatures:
        at = data.find(signature)
        while 0 <= at <= len(data) - 16:
            if at % 8 == 0 and data[at + 6] in (1, 2, 4) and data[at + 7] == 8:
                hits.append(at)
                break
            at = data.find(signature, at + 1)
    return min(hits, default=None)
