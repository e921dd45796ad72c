"""Functions of an ELF image from `.symtab` and `.dynsym`, in 13 bytes each.

Names stay in the file: a row holds the offset of its name and the descriptor
is kept open, so naming a function costs one small read, once. What is a
function, how zero-sized symbols grow to the next one, and which of several
names at one address is shown follow perf (tools/perf/util/symbol-elf.c,
`symbols__fixup_end`, `choose_best_symbol`), so that our flame graphs and perf's
say the same words.

Symbols are read in pieces of at most `MAX_READ_BYTES`; a table over
`MAX_FUNCTIONS` is refused, since building it takes about 30 bytes per row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nodescope.symbols.elf import (
    EM_AARCH64,
    EM_ARM,
    EM_RISCV,
    PT_LOAD,
    SHF_EXECINSTR,
    SHT_DYNSYM,
    SHT_SYMTAB,
    Elf,
    Section,
)
from nodescope.symbols.file_bytes import MAX_READ_BYTES, ByteSource, read_name
from nodescope.symbols.unresolved import Reason, Unresolvable

MAX_FUNCTIONS = 1_000_000
MAX_SYMBOLS = 8_000_000
MAX_ALIASES = 32
MAX_NESTING = 8

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
     ("size", "<u8")]
)  # fmt: skip
_STT_NOTYPE, _STT_FUNC, _STT_GNU_IFUNC = 0, 2, 10
_STB_LOCAL, _STB_GLOBAL, _STB_WEAK = 0, 1, 2
_MANGLED = ("_Z", "_RN", "_RI")
_SHN_LORESERVE = 0xFF00
_UINT32_MAX = 0xFFFFFFFF

# A row's rank: perf's order of preference, as far as it needs no name.
_HAS_NO_SIZE, _IS_LABEL, _IS_WEAK, _IS_NOT_GLOBAL, _FROM_DYNSYM = 16, 8, 4, 2, 1
_RANK_BITS, _ALL_RANKS = 5, 31
_POSITION_BITS = 20  # MAX_FUNCTIONS fits
_Scalar = TypeVar("_Scalar", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Strings:
    """A string table inside a source."""

    source: ByteSource
    offset: int
    end: int


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """Sorted functions; equal starts are aliases between which the name decides."""

    base: int
    starts: NDArray[np.uint32]
    sizes: NDArray[np.uint32]
    names: NDArray[np.uint32]
    dynamic: NDArray[np.bool_]
    strings: tuple[Strings, Strings]

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays."""
        return self.starts.nbytes + self.sizes.nbytes + self.names.nbytes + self.dynamic.nbytes

    def lookup(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The row whose function covers each address, or -1."""
        relative = addresses - np.uint64(self.base)  # wraps far away when below base
        near = relative <= np.uint64(_UINT32_MAX)
        offsets = np.where(near, relative, 0).astype(np.uint32)
        rows = self.starts.searchsorted(offsets, "right").astype(np.int64) - 1
        # A symbol inside another (an assembly label) may end before the outer
        # one does; look at a few before it rather than lose the address.
        before = rows[:, None] - np.arange(MAX_NESTING)
        at = np.maximum(before, 0)
        covers = (offsets[:, None] - self.starts[at] < self.sizes[at]) & (before >= 0)
        covers &= near[:, None]
        return np.where(covers.any(axis=1), rows - covers.argmax(axis=1), -1)

    def start(self, row: int) -> int:
        """The virtual address where the function begins."""
        return self.base + int(self.starts[row])

    def name(self, row: int) -> str:
        """The best of the names at this row's address; may raise `Unresolvable`."""
        start = self.starts[row]
        first = int(np.searchsorted(self.starts, start, side="left"))
        last = int(np.searchsorted(self.starts, start, side="right"))
        candidates = [self._raw_name(i) for i in range(first, min(last, first + MAX_ALIASES))]
        return min(candidates, key=name_preference)

    def _raw_name(self, row: int) -> str:
        strings = self.strings[int(self.dynamic[row])]
        return read_name(strings.source, strings.offset + int(self.names[row]), strings.end)


def name_preference(name: str) -> tuple[bool, int, int]:
    """Rank a name as perf does among equals: few leading underscores, then the longest.

    It looks at readable names, so that the underscore of a mangled one does not count.
    """
    underscores = 0 if name.startswith(_MANGLED) else len(name) - len(name.lstrip("_"))
    return not name, underscores, -len(name)


def read_function_table(elf: Elf, symbols: Elf | None = None) -> FunctionTable | None:
    """Functions of `elf`, `.symtab` and `.dynsym` merged; None if it lists none.

    `symbols` is the separate debug file to take `.symtab` from instead. A
    damaged `.symtab` does not cost us an intact `.dynsym`.
    """
    with_symtab = symbols or elf
    base = min((s.address for s in elf.segments if s.type == PT_LOAD), default=0)
    rows = _Rows([], [], [], [])
    strings: list[Strings] = []
    damage: Unresolvable | None = None
    for owner, kind, rank in ((with_symtab, SHT_SYMTAB, 0), (elf, SHT_DYNSYM, _FROM_DYNSYM)):
        section = owner.section_of_type(kind)
        strings.append(Strings(owner.source, 0, 0))
        if section is None:
            continue
        before = len(rows.starts)
        try:
            strings[-1] = _strings_of(owner, section)
            _read_rows(owner, section, strings[-1], rank, base, rows)
        except Unresolvable as error:
            damage = error
            rows.cut(before)
    if not sum(len(piece) for piece in rows.starts):
        if damage is not None:
            raise damage
        return None
    return _build(rows, base, (strings[0], strings[1]), with_symtab)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Functions as found, unsorted, in pieces; starts are relative to the base."""

    starts: list[NDArray[np.uint32]]
    sizes: list[NDArray[np.uint32]]
    names: list[NDArray[np.uint32]]
    ranks: list[NDArray[np.uint8]]

    def cut(self, pieces: int) -> None:
        """Forget all but the first pieces."""
        for column in (self.starts, self.sizes, self.names, self.ranks):
            del column[pieces:]


def _strings_of(elf: Elf, symbols: Section) -> Strings:
    if symbols.link >= len(elf.sections):
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "symbol names")
    section = elf.sections[symbols.link]
    end = min(section.offset + section.size, elf.source.size)
    return Strings(elf.source, section.offset, end)


def _read_rows(
    elf: Elf, section: Section, strings: Strings, rank: int, base: int, rows: _Rows
) -> None:
    count = section.size // _SYMBOL.itemsize
    if section.entry_size != _SYMBOL.itemsize:
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "symbol size")
    if count > MAX_SYMBOLS:
        raise Unresolvable(elf.source.label, Reason.TOO_LARGE, f"{count} symbols")
    executable = np.zeros(1 << 16, np.bool_)
    for s in elf.sections[:_SHN_LORESERVE]:
        executable[s.index] = bool(s.flags & SHF_EXECINSTR)
    # Mapping symbols ($x, $d) are local labels that mark no function.
    local_labels = elf.machine not in (EM_AARCH64, EM_ARM, EM_RISCV)
    total = sum(len(piece) for piece in rows.starts)
    step = MAX_READ_BYTES // _SYMBOL.itemsize
    for first in range(0, count, step):
        length = min(step, count - first) * _SYMBOL.itemsize
        raw = elf.source.read_at(section.offset + first * _SYMBOL.itemsize, length)
        symbols = np.frombuffer(raw, _SYMBOL)
        picked = symbols[_is_function(symbols, executable, local_labels, strings, base)]
        total += len(picked)
        if total > MAX_FUNCTIONS:
            raise Unresolvable(elf.source.label, Reason.TOO_LARGE, "functions")
        rows.starts.append((picked["value"] - np.uint64(base)).astype(np.uint32))
        rows.sizes.append(np.minimum(picked["size"], _UINT32_MAX).astype(np.uint32))
        rows.names.append(picked["name"].copy())
        rows.ranks.append(_rank(picked, rank))


def _is_function(
    symbols: NDArray[np.void],
    executable: NDArray[np.bool_],
    local_labels: bool,
    strings: Strings,
    base: int,
) -> NDArray[np.bool_]:
    """Which of the raw symbols are functions, or labels of code."""
    kind = symbols["info"] & 15
    section = symbols["section"]
    # perf takes labels from code sections unless their visibility is internal
    # or hidden; linkers leave many hidden ones inside real functions.
    label = (kind == _STT_NOTYPE) & executable[section] & ~np.isin(symbols["other"] & 3, (1, 2))
    if not local_labels:
        label &= symbols["info"] >> 4 != _STB_LOCAL
    keep: NDArray[np.bool_] = (kind == _STT_FUNC) | (kind == _STT_GNU_IFUNC) | label
    keep &= (section != 0) & (symbols["name"] != 0)
    keep &= symbols["name"] < max(strings.end - strings.offset, 0)
    # Images larger than 4 GiB do not exist; absurd values do.
    keep &= symbols["value"] - np.uint64(base) <= np.uint64(_UINT32_MAX)
    return keep


def _rank(picked: NDArray[np.void], rank: int) -> NDArray[np.uint8]:
    binding = picked["info"] >> 4
    ranks = np.full(len(picked), rank, np.uint8)
    ranks[picked["size"] == 0] |= _HAS_NO_SIZE
    ranks[picked["info"] & 15 == _STT_NOTYPE] |= _IS_LABEL
    ranks[binding == _STB_WEAK] |= _IS_WEAK
    ranks[binding != _STB_GLOBAL] |= _IS_NOT_GLOBAL
    return ranks


def _joined(pieces: list[NDArray[_Scalar]]) -> NDArray[_Scalar]:
    """The pieces in one array, and out of memory."""
    whole = np.concatenate(pieces)
    pieces.clear()
    return whole


def _build(rows: _Rows, base: int, strings: tuple[Strings, Strings], elf: Elf) -> FunctionTable:
    """Sort by address, keep what perf would prefer at each."""
    # One sort of one 64-bit key (start, rank, position), in place: an argsort
    # of several columns takes three times the memory, and this is the peak.
    keys = _joined(rows.starts).astype(np.uint64)
    keys <<= np.uint64(_RANK_BITS)
    keys |= np.concatenate(rows.ranks)
    keys <<= np.uint64(_POSITION_BITS)
    keys |= np.arange(len(keys), dtype=np.uint32)
    keys.sort()
    starts = (keys >> np.uint64(_RANK_BITS + _POSITION_BITS)).astype(np.uint32)
    ranks = (keys >> np.uint64(_POSITION_BITS)).astype(np.uint8) & np.uint8(_ALL_RANKS)
    first = np.append(True, starts[1:] != starts[:-1])
    best = ranks[first][np.cumsum(first, dtype=np.uint32) - 1]
    keep = ranks == best
    picked = (keys[keep] & np.uint64((1 << _POSITION_BITS) - 1)).astype(np.uint32)
    starts, dynamic = starts[keep], (ranks[keep] & _FROM_DYNSYM) != 0
    del keys, ranks, best, first, keep
    sizes = _joined(rows.sizes)[picked]
    names = _joined(rows.names)[picked]
    _grow_unsized(starts, sizes, base, elf)
    return FunctionTable(base, starts, sizes, names, dynamic, strings)


def _grow_unsized(
    starts: NDArray[np.uint32], sizes: NDArray[np.uint32], base: int, elf: Elf
) -> None:
    """Let zero-sized symbols reach the next one, but not beyond their section."""
    unsized = np.flatnonzero(sizes == 0)
    if not len(unsized):
        return
    following = np.searchsorted(starts, starts[unsized], side="right")
    last = starts[-1].astype(np.int64) + 4096
    nexts = np.append(starts.astype(np.int64), last)[following]
    code = sorted(
        (s.address - base, s.address + s.size - base)
        for s in elf.sections
        if s.flags & SHF_EXECINSTR and 0 <= s.address - base <= _UINT32_MAX
    )
    if code:
        begins = np.array([c[0] for c in code], np.int64)
        ends = np.array([min(c[1], _UINT32_MAX) for c in code], np.int64)
        own = np.searchsorted(begins, starts[unsized], side="right") - 1
        within = (own >= 0) & (starts[unsized] < ends[np.maximum(own, 0)])
        nexts = np.where(within, np.minimum(nexts, ends[np.maximum(own, 0)]), nexts)
    sizes[unsized] = np.clip(nexts - starts[unsized], 0, _UINT32_MAX).astype(np.uint32)
