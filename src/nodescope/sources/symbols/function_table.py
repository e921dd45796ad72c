"""Functions of an ELF image from `.symtab` and `.dynsym`, in 13 bytes each.

Names stay in the file: a row holds the offset of its name and the descriptor
is kept open, so naming a function costs one small read, once. What is a
function, how zero-sized symbols grow to the next one, and which of several
names at one address is shown follow perf (tools/perf/util/symbol-elf.c,
`symbols__fixup_end`, `choose_best_symbol`), so that our flame graphs and perf's
say the same words.

Symbols are read in pieces of at most `MAX_READ_BYTES`; a table over
`MAX_FUNCTIONS` is refused, since building it takes about 40 bytes per row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodescope.sources.symbols.elf import (
    EM_AARCH64,
    EM_ARM,
    EM_RISCV,
    SHF_EXECINSTR,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_SYMTAB,
    Elf,
    Section,
)
from nodescope.sources.symbols.file_bytes import MAX_READ_BYTES, ByteSource, read_name
from nodescope.sources.symbols.unresolved import Reason, Unresolvable

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
_SHN_LORESERVE = 0xFF00
_UINT32_MAX = 0xFFFFFFFF

# A row's rank: perf's order of preference, as far as it needs no name.
_HAS_NO_SIZE, _IS_LABEL, _IS_WEAK, _IS_NOT_GLOBAL, _FROM_DYNSYM = 16, 8, 4, 2, 1


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
        """What the arrays cost."""
        return self.starts.nbytes + self.sizes.nbytes + self.names.nbytes + self.dynamic.nbytes

    def lookup(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The row whose function covers each address, or -1."""
        relative = addresses - np.uint64(self.base)  # wraps far away when below base
        near = relative <= np.uint64(_UINT32_MAX)
        offsets = np.where(near, relative, 0).astype(np.uint32)
        rows = np.searchsorted(self.starts, offsets, side="right").astype(np.int64) - 1
        found = np.full(len(addresses), -1, np.int64)
        pending = near & (rows >= 0)
        # A symbol inside another (an assembly label) may end before the outer
        # one does; step outwards a few times rather than lose the address.
        for _ in range(MAX_NESTING):
            if not pending.any():
                break
            at = np.maximum(rows, 0)
            covered = pending & (offsets - self.starts[at] < self.sizes[at])
            found[covered] = rows[covered]
            pending &= ~covered
            rows -= 1
            pending &= rows >= 0
        return found

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
    """What perf prefers among equals: few leading underscores, then the longest name."""
    return not name, len(name) - len(name.lstrip("_")), -len(name)


def read_function_table(elf: Elf, symbols: Elf | None = None) -> FunctionTable | None:
    """Functions of `elf`, `.symtab` and `.dynsym` merged; None if it lists none.

    `symbols` is the separate debug file to take `.symtab` from instead. A
    damaged `.symtab` does not cost us an intact `.dynsym`.
    """
    with_symtab = symbols or elf
    parts: list[_Rows] = []
    strings: list[Strings] = []
    damage: Unresolvable | None = None
    for owner, kind, rank in ((with_symtab, SHT_SYMTAB, 0), (elf, SHT_DYNSYM, _FROM_DYNSYM)):
        section = owner.section_of_type(kind)
        strings.append(Strings(owner.source, 0, 0))
        if section is None or section.type == SHT_NOBITS:
            continue
        try:
            strings[-1] = _strings_of(owner, section)
            parts.append(_read_rows(owner, section, strings[-1], rank))
        except Unresolvable as error:
            damage = error
    rows = _merge(parts)
    if rows is None or not len(rows.values):
        if damage is not None:
            raise damage
        return None
    return _build(rows, (strings[0], strings[1]), with_symtab)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Functions as found, unsorted."""

    values: NDArray[np.uint64]
    sizes: NDArray[np.uint32]
    names: NDArray[np.uint32]
    ranks: NDArray[np.uint8]


def _strings_of(elf: Elf, symbols: Section) -> Strings:
    if symbols.link >= len(elf.sections):
        raise Unresolvable(elf.source.label, Reason.MALFORMED, "symbol names")
    section = elf.sections[symbols.link]
    end = min(section.offset + section.size, elf.source.size)
    return Strings(elf.source, section.offset, end)


def _read_rows(elf: Elf, section: Section, strings: Strings, rank: int) -> _Rows:
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
    pieces: list[_Rows] = []
    kept = 0
    step = MAX_READ_BYTES // _SYMBOL.itemsize
    for first in range(0, count, step):
        length = min(step, count - first) * _SYMBOL.itemsize
        raw = elf.source.read_at(section.offset + first * _SYMBOL.itemsize, length)
        piece = _select(np.frombuffer(raw, _SYMBOL), executable, local_labels, strings, rank)
        kept += len(piece.values)
        if kept > MAX_FUNCTIONS:
            raise Unresolvable(elf.source.label, Reason.TOO_LARGE, "functions")
        pieces.append(piece)
    merged = _merge(pieces)
    return merged if merged is not None else _merge_empty()


def _select(
    symbols: NDArray[np.void],
    executable: NDArray[np.bool_],
    local_labels: bool,
    strings: Strings,
    rank: int,
) -> _Rows:
    """The functions among raw symbols, with what perf's preference needs of them."""
    kind = symbols["info"] & 15
    section = symbols["section"]
    # perf takes labels from code sections unless their visibility is internal
    # or hidden; linkers leave many hidden ones inside real functions.
    label = (kind == _STT_NOTYPE) & executable[section] & ~np.isin(symbols["other"] & 3, (1, 2))
    if not local_labels:
        label &= symbols["info"] >> 4 != _STB_LOCAL
    function = (kind == _STT_FUNC) | (kind == _STT_GNU_IFUNC)
    keep = (function | label) & (section != 0) & (symbols["name"] != 0)
    keep &= symbols["name"] < max(strings.end - strings.offset, 0)
    picked = symbols[keep]
    binding = picked["info"] >> 4
    ranks = np.full(len(picked), rank, np.uint8)
    ranks |= np.where(picked["size"] == 0, _HAS_NO_SIZE, 0).astype(np.uint8)
    ranks |= np.where(picked["info"] & 15 == _STT_NOTYPE, _IS_LABEL, 0).astype(np.uint8)
    ranks |= np.where(binding == _STB_WEAK, _IS_WEAK, 0).astype(np.uint8)
    ranks |= np.where(binding != _STB_GLOBAL, _IS_NOT_GLOBAL, 0).astype(np.uint8)
    return _Rows(
        picked["value"].copy(),
        np.minimum(picked["size"], _UINT32_MAX).astype(np.uint32),
        picked["name"].copy(),
        ranks,
    )


def _merge_empty() -> _Rows:
    return _Rows(
        np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint32),
        np.empty(0, np.uint8),
    )  # fmt: skip


def _merge(parts: list[_Rows]) -> _Rows | None:
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    return _Rows(
        np.concatenate([p.values for p in parts]),
        np.concatenate([p.sizes for p in parts]),
        np.concatenate([p.names for p in parts]),
        np.concatenate([p.ranks for p in parts]),
    )


def _build(rows: _Rows, strings: tuple[Strings, Strings], elf: Elf) -> FunctionTable | None:
    base = int(rows.values.min())
    relative = rows.values - np.uint64(base)
    # One stray symbol must not push the rest out of 32 bits: images larger
    # than 4 GiB do not exist, absurd values do.
    near = relative <= np.uint64(_UINT32_MAX)
    if not near.all():
        base = _lowest_segment(elf)
        relative = rows.values - np.uint64(base)
        near = relative <= np.uint64(_UINT32_MAX)
    starts = relative[near].astype(np.uint32)
    ranks = rows.ranks[near]
    order = np.lexsort((ranks, starts))
    starts, ranks = starts[order], ranks[order]
    if not len(starts):
        return None
    first = np.flatnonzero(np.r_[True, starts[1:] != starts[:-1]])
    best = np.repeat(ranks[first], np.diff(np.r_[first, len(starts)]))
    keep = ranks == best
    picked = order[keep]
    starts = starts[keep]
    sizes = rows.sizes[near][picked]
    _grow_unsized(starts, sizes, base, elf)
    return FunctionTable(
        base, starts, sizes, rows.names[near][picked], (ranks[keep] & _FROM_DYNSYM) != 0, strings
    )


def _lowest_segment(elf: Elf) -> int:
    return min((s.address for s in elf.segments if s.memory_size), default=0)


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
