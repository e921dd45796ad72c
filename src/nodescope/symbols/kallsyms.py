"""Kernel function names, from `/proc/kallsyms` (kernel/kallsyms.c).

Each line is `<address> <type> <name>`, for modules a tab and `[<module>]`.
Only code is kept (types t, T, w, W, i): some 120,000 lines become arrays of
about 5 MB. BPF programs appear as module `[bpf]`, trampolines as
`[__builtin__ftrace]` and `[__builtin__kprobes]`.

The file is read and parsed in pieces, without a Python loop over lines. Which
of several names at one address is shown, and where the last function of a
module ends, follow perf (`symbols__fixup_end`, `choose_best_symbol`).

With `kernel.kptr_restrict`, or without CAP_SYSLOG, every address reads as
zero: that is `SourceDenied`, not an empty kernel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nodescope.errors import MalformedSource, SourceDenied, source_error
from nodescope.symbols.file_bytes import printable

KERNEL = "[kernel]"

MAX_FILE_BYTES = 64 << 20
"""A node with ten thousand BPF programs writes about 8 MB."""

PIECE_BYTES = 256 << 10
_READ_BYTES = 64 << 10
_PAGE = 4096
_LONE = (b"[bpf]", b"[__builtin__ftrace]", b"[__builtin__kprobes]")
_LONGEST_LONE = 64 << 10  # the largest BPF programs seen in use
_NEWLINE, _TAB = 10, 9
_GATHER_ROWS = 4096

# Powers of an odd number: a polynomial hash. Module names are shorter than 64
# bytes (MODULE_NAME_LEN).
_WEIGHTS = np.cumprod(np.full(64, 0x9E3779B97F4A7C15, np.uint64))
_Scalar = TypeVar("_Scalar", bound=np.generic)

_IS_CODE = np.zeros(256, np.bool_)
_IS_CODE[list(b"tTwWi")] = True
_HEX = np.full(256, 255, np.uint8)
for _digit in range(16):
    _HEX[ord(f"{_digit:x}")] = _HEX[ord(f"{_digit:X}")] = _digit


@dataclass(frozen=True, slots=True)
class KernelSymbols:
    """Functions of the running kernel, sorted by address."""

    starts: NDArray[np.uint64]
    ends: NDArray[np.uint64]
    name_offsets: NDArray[np.uint32]
    names: NDArray[np.uint8]
    module_indexes: NDArray[np.uint16]
    modules: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays."""
        return (
            self.starts.nbytes + self.ends.nbytes + self.name_offsets.nbytes
            + self.names.nbytes + self.module_indexes.nbytes
        )  # fmt: skip

    def same_as(self, other: KernelSymbols) -> bool:
        """Return whether the same functions lie at the same places."""
        return self.modules == other.modules and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("starts", "ends", "name_offsets", "names", "module_indexes")
        )

    def lookup(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The row whose function covers each address, or -1."""
        rows = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        rows[(rows < 0) | (addresses >= self.ends[np.maximum(rows, 0)])] = -1
        return rows

    def name(self, row: int) -> str:
        """The function's name."""
        raw = self.names[int(self.name_offsets[row]) : int(self.name_offsets[row + 1])]
        return printable(raw.tobytes().decode("utf-8", "replace"))

    def module(self, row: int) -> str:
        """`[kernel]`, or the module's name in brackets as the kernel writes it."""
        return self.modules[int(self.module_indexes[row])]


class LiveKernelSymbols:
    """Kernel symbols that follow modules and BPF programs being loaded."""

    def __init__(
        self,
        proc_root: Path = Path("/proc"),
        min_interval_s: float = 30.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._proc_root = proc_root
        self._min_interval_s = min_interval_s
        self._clock = clock
        self._read_at = clock()
        self.current = read_kallsyms(proc_root)

    def refresh(self) -> bool:
        """Read the file again unless that was done lately; whether it was.

        Call when an address is in no function. Reading costs some 100 ms of
        CPU, most of it the kernel's, hence the interval. A failed read keeps
        the symbols there are and raises.
        """
        now = self._clock()
        if now - self._read_at < self._min_interval_s:
            return False
        self._read_at = now
        found = read_kallsyms(self._proc_root)
        if not found.same_as(self.current):  # else the old arrays stay where they are: the
            self.current = found  # new ones lie at the heap's end and can be given back
        return True


def read_kallsyms(proc_root: Path = Path("/proc")) -> KernelSymbols:
    """Read and parse the running kernel's symbols."""
    path = proc_root / "kallsyms"
    try:
        return _assemble(_read_pieces(path), path)
    except OSError as error:
        raise source_error(path, error) from error


def parse_kallsyms(data: bytes) -> KernelSymbols:
    """Parse the file's content."""
    return _assemble(iter((data,)), Path("kallsyms"))


def _read_pieces(path: Path) -> Iterator[bytes]:
    """The file in runs of whole lines; the kernel hands out a page per read."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        rest = b""
        total = 0
        pieces: list[bytes] = []
        pending = 0
        while total < MAX_FILE_BYTES:
            data = os.read(fd, _READ_BYTES)
            total += len(data)
            pending += len(data)
            pieces.append(data)
            if data and pending < PIECE_BYTES:
                continue
            whole = rest + b"".join(pieces)
            cut = whole.rfind(b"\n") + 1 if data else len(whole)
            if cut:
                yield whole[:cut]
            rest, pieces, pending = whole[cut:], [], 0
            if not data:
                return
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Code symbols of one run of lines, in file order."""

    starts: NDArray[np.uint64]
    name_sizes: NDArray[np.uint32]
    names: NDArray[np.uint8]
    modules: NDArray[np.uint16]


def _assemble(pieces: Iterator[bytes], path: Path) -> KernelSymbols:
    modules: dict[bytes, int] = {}
    parsed = [_parse_piece(piece, modules, path) for piece in pieces]
    starts = _joined([p.starts for p in parsed], np.uint64)
    if not len(starts):
        raise MalformedSource(path, "no code symbols")
    if not starts.any():
        raise SourceDenied(
            path,
            "all addresses are hidden",
            hint="run as root with CAP_SYSLOG, or set sysctl kernel.kptr_restrict=1",
        )
    sizes = _joined([p.name_sizes for p in parsed], np.uint32)
    names = _joined([p.names for p in parsed], np.uint8)
    module = _joined([p.modules for p in parsed], np.uint16)
    parsed.clear()  # the peak counts: a refresh happens with the old symbols in place
    order = _choose(starts)
    begins = np.cumsum(sizes, dtype=np.int64) - sizes
    starts, module, sizes = starts[order], module[order], sizes[order]
    names = _gather(names, begins[order], sizes)
    offsets = np.zeros(len(sizes) + 1, np.uint32)
    np.cumsum(sizes, out=offsets[1:])
    lone = np.array([False, *(label in _LONE for label in modules)])
    ends = _find_ends(starts, module, lone[np.minimum(module, len(modules))])
    _end_core_text(ends, starts, module, offsets, names)
    labels = (
        KERNEL,
        *(printable(name.decode("utf-8", "replace")) or "[unknown]" for name in modules),
    )
    return KernelSymbols(starts, ends, offsets, names, module, labels)


def _joined(parts: list[NDArray[_Scalar]], dtype: type[_Scalar]) -> NDArray[_Scalar]:
    return np.concatenate([np.empty(0, dtype), *parts])


def _parse_piece(data: bytes, modules: dict[bytes, int], path: Path) -> _Piece:
    """Columns of the code symbols in `data`, whole lines only."""
    text = np.frombuffer(data, np.uint8)
    stops = np.flatnonzero(text == _NEWLINE)
    if len(text) and (not len(stops) or stops[-1] != len(text) - 1):
        stops = np.append(stops, len(text))
    begins = np.empty_like(stops)
    if len(stops):
        begins[0] = 0
        begins[1:] = stops[:-1] + 1
    width = data.find(b" ")  # 16 digits, 8 on 32-bit kernels
    fits = stops - begins >= width + 4
    if width not in (8, 16) or not fits.all():
        return _parse_odd_piece(data, modules, path)
    code = _IS_CODE[text[begins + width + 1]]
    begins, stops = begins[code], stops[code]
    starts = np.zeros(len(begins), np.uint64)
    digits = np.zeros(len(begins), np.uint8)
    for column in range(width):
        digit = _HEX[text[begins + column]]
        digits |= digit
        starts = starts << np.uint64(4) | digit
    if (digits & 0xF0).any():
        raise MalformedSource(path, "an address is not hexadecimal")
    name_begins = begins + width + 3
    module, name_stops = _split_modules(data, text, name_begins, stops, modules)
    sizes = (name_stops - name_begins).astype(np.uint32)
    return _Piece(starts, sizes, _gather(text, name_begins, sizes), module)


def _parse_odd_piece(data: bytes, modules: dict[bytes, int], path: Path) -> _Piece:
    """Drop lines that are too short, once; anything else is not kallsyms."""
    lines = [line for line in data.split(b"\n") if line]
    widths = {line.find(b" ") for line in lines}
    if lines and (widths - {8, 16} or len(widths) > 1):
        raise MalformedSource(path, "lines do not start with an address and a type")
    width = min(widths, default=16)
    whole = [line for line in lines if len(line) >= width + 4]
    if whole:
        return _parse_piece(b"\n".join(whole) + b"\n", modules, path)
    none = np.empty(0, np.uint8)
    return _Piece(none.astype(np.uint64), none.astype(np.uint32), none, none.astype(np.uint16))


def _split_modules(
    data: bytes,
    text: NDArray[np.uint8],
    begins: NDArray[np.int64],
    stops: NDArray[np.int64],
    modules: dict[bytes, int],
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Module index of each name (0: the core kernel) and where the name ends."""
    index = np.zeros(len(begins), np.uint16)
    tabs = np.flatnonzero(text == _TAB)
    if not len(tabs) or not len(begins):
        return index, stops
    at = np.searchsorted(tabs, begins)
    tab = tabs[np.minimum(at, len(tabs) - 1)]
    has = (at < len(tabs)) & (tab < stops) & (tab >= begins)
    rows = np.flatnonzero(has)
    if not len(rows):
        return index, stops
    # Some nodes have more module symbols than core ones, all of few modules:
    # hash the labels (with their tab, so that none is empty) and look up each once.
    sizes = (stops[rows] - tab[rows]).astype(np.uint32)
    letters = _gather(text, tab[rows], sizes).astype(np.uint64)
    at_letter = np.cumsum(sizes, dtype=np.int64) - sizes
    position = np.arange(len(letters)) - np.repeat(at_letter, sizes)
    hashes = np.add.reduceat(letters * _WEIGHTS[position % len(_WEIGHTS)], at_letter)
    _, samples, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    numbers = []
    for row in rows[samples].tolist():
        label = data[tab[row] + 1 : stops[row]]
        numbers.append(modules.setdefault(label, min(len(modules) + 1, 0xFFFF)))
    index[rows] = np.array(numbers, np.uint16)[inverse]
    return index, np.where(has, tab, stops)


def _gather(
    text: NDArray[np.uint8], begins: NDArray[np.int64], sizes: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    """The runs `begins[i] : begins[i] + sizes[i]` of `text`, end to end.

    In blocks, because the index of each byte takes eight.
    """
    blocks = [np.empty(0, np.uint8)]
    for first in range(0, len(sizes), _GATHER_ROWS):
        size = sizes[first : first + _GATHER_ROWS]
        ends = np.cumsum(size, dtype=np.int64)
        shift = begins[first : first + _GATHER_ROWS] - (ends - size)
        blocks.append(text[np.arange(int(ends[-1])) + np.repeat(shift, size)])
    return np.concatenate(blocks)


def _choose(starts: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The order by address, with one row per address.

    Of several names at one address perf shows the last: it first lets every
    symbol reach the next, which leaves all but the last empty, then prefers
    the one that is not.
    """
    order: NDArray[np.int64] = np.argsort(starts, kind="stable")
    ordered = starts[order]
    last: NDArray[np.bool_] = np.append(ordered[1:] != ordered[:-1], True)
    chosen: NDArray[np.int64] = order[last]
    return chosen


def _find_ends(
    starts: NDArray[np.uint64], modules: NDArray[np.uint16], lone: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Each function ends where the next begins; the last of a module with its page.

    What is `lone` was put there by itself, and anything may come after it: it ends with its
    page, unless the next of its kind is near, as it is where many were packed together.
    """
    page = np.uint64(_PAGE)
    page_end = (starts // page + np.uint64(2)) * page
    ends = np.append(starts[1:], page_end[-1])
    foreign = np.append(modules[1:] != modules[:-1], True)
    bounded = foreign | (lone & (ends - starts > np.uint64(_LONGEST_LONE)))
    page_end[lone] -= page
    return np.where(bounded, np.minimum(ends, page_end), ends)


def _end_core_text(
    ends: NDArray[np.uint64],
    starts: NDArray[np.uint64],
    modules: NDArray[np.uint16],
    offsets: NDArray[np.uint32],
    names: NDArray[np.uint8],
) -> None:
    """Nothing lies between `_etext` and the next symbol: that is data."""
    for marker in (b"_etext", b"_einittext"):
        fits = np.flatnonzero((offsets[1:] - offsets[:-1] == len(marker)) & (modules == 0))
        letters = names[offsets[fits][:, np.newaxis] + np.arange(len(marker))]
        for row in fits[(letters == np.frombuffer(marker, np.uint8)).all(axis=1)].tolist():
            ends[row] = starts[row]
