"""One executable image and all it knows about the names of its functions.

Tables are loaded on the first address asked for, from the best place there is:
the image's `.symtab`, else a separate debug file's, else MiniDebugInfo; merged
with `.dynsym`; then Go's pclntab, then the stubs of the PLT. What none of them
covers is named by where its function begins, "+0x<file offset>", from
`.eh_frame_hdr`, or by its own file offset when even that is missing.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nodescope.symbols.address_map import NOWHERE, make_address_map
from nodescope.symbols.debug_files import find_debug_file, unpack_mini_debug_info
from nodescope.symbols.demangle import demangle
from nodescope.symbols.eh_frame import FunctionStarts, read_function_starts
from nodescope.symbols.elf import SHT_SYMTAB, Elf
from nodescope.symbols.file_bytes import FileBytes, MemoryBytes
from nodescope.symbols.function_table import read_function_table
from nodescope.symbols.go import read_go_functions
from nodescope.symbols.plt import find_plt_stubs
from nodescope.symbols.unresolved import Reason, Unresolvable

_BASE_BYTES = 8192
"""What an image costs before any table: headers, objects, descriptor."""

_NAME_BYTES = 180
"""What a remembered name costs besides its characters."""

_MAX_NAMES_BYTES = 4 << 20
"""Names are forgotten above this, and read again when needed."""


class _Table(Protocol):
    @property
    def nbytes(self) -> int: ...
    def lookup(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]: ...
    def start(self, row: int) -> int: ...
    def name(self, row: int) -> str: ...


def offset_name(file_offset: int) -> str:
    """How an unnamed function is shown."""
    return f"+0x{file_offset:x}"


def _readable(name: str) -> str:
    bare = name.removesuffix("@plt")
    return demangle(bare) + name[len(bare) :]


class Image:
    """An open ELF image; `close` frees its descriptors and tables."""

    def __init__(self, elf: Elf, path: str, roots: tuple[str, ...]) -> None:
        self.elf = elf
        self.used_at = 0.0
        self.grew = True  # a table or descriptor was added that nobody has counted yet
        self.counted = (0, 0)  # bytes and descriptors, as they were when somebody did
        self.closed = False
        self._path = path
        self._roots = roots
        self._map = make_address_map(elf)
        self._debug: Elf | None = None
        self._tables: list[_Table] | None = None
        self._starts: FunctionStarts | None = None
        self._starts_tried = False
        self._names: dict[tuple[int, int], str] = {}
        self._names_bytes = 0
        self.reason = Reason.NO_FUNCTION

    @property
    def build_id(self) -> bytes | None:
        """The GNU build-id, if the linker wrote one."""
        return self.elf.build_id

    @property
    def nbytes(self) -> int:
        """Estimate the memory of this image."""
        tables = sum(t.nbytes for t in self._tables or ())
        starts = self._starts.nbytes if self._starts else 0
        unpacked = 0
        if self._debug is not None and isinstance(self._debug.source, MemoryBytes):
            unpacked = self._debug.source.size
        return _BASE_BYTES + tables + starts + unpacked + self._names_bytes

    @property
    def descriptors(self) -> int:
        """How many files it holds open."""
        sources = (self.elf.source, self._debug.source if self._debug else None)
        return sum(isinstance(s, FileBytes) and s.is_open for s in sources)

    def unchanged(self) -> bool:
        """Return whether the file is still the one the tables were read from."""
        source = self.elf.source
        return not self.closed and (not isinstance(source, FileBytes) or source.unchanged())

    def close(self) -> None:
        """Free everything; addresses resolve to offsets from then on."""
        self.closed = True
        self.elf.source.close()
        if self._debug is not None:
            self._debug.source.close()
        self._debug, self._starts = None, None
        self._tables, self._starts_tried = [], True
        self._names, self._names_bytes = {}, 0
        self.reason = Reason.EVICTED

    def resolve(self, file_offsets: NDArray[np.uint64], unresolved: Counter[Reason]) -> list[str]:
        """A name for each file offset; what stayed without is counted by reason."""
        if self._tables is None:
            self._tables = self._load_tables()
        addresses = self._map.addresses(file_offsets)
        names: list[str | None] = [None] * len(file_offsets)
        missing = np.ones(len(file_offsets), np.bool_)
        for number, table in enumerate(self._tables):
            if not missing.any():
                break
            rows = table.lookup(addresses)
            found = (missing & (rows >= 0)).nonzero()[0]
            # Functions are fewer than their offsets, and each is named once.
            name_of = {
                row: self._name(number, table, row, unresolved)
                for row in dict.fromkeys(rows[found].tolist())
            }
            for i, row in zip(found.tolist(), rows[found].tolist(), strict=True):
                names[i] = name_of[row]
            missing &= rows < 0
        if missing.any():
            at = missing.nonzero()[0]
            unresolved[self.reason] += len(at)
            for i, name in zip(at.tolist(), self._offset_names(file_offsets[at], addresses[at]),
                               strict=True):  # fmt: skip
                names[i] = name
        return [name if name is not None else "" for name in names]

    def _name(self, number: int, table: _Table, row: int, unresolved: Counter[Reason]) -> str:
        key = (number, row)
        name = self._names.get(key)
        if name is None:
            try:
                name = _readable(table.name(row))
            except Unresolvable as error:
                unresolved[error.why] += 1
                name = ""
            if not name:
                name = offset_name(self._map.file_offset(table.start(row)) or 0)
            if self._names_bytes > _MAX_NAMES_BYTES:
                self._names, self._names_bytes = {}, 0
            self._names[key] = name
            self._names_bytes += len(name) + _NAME_BYTES
        return name

    def _offset_names(
        self, file_offsets: NDArray[np.uint64], addresses: NDArray[np.uint64]
    ) -> list[str]:
        if not self._starts_tried:
            self._starts_tried = self.grew = True
            try:
                self._starts = read_function_starts(self.elf)
            except Unresolvable as error:
                self.reason = error.why
        if self._starts is None:
            return [offset_name(offset) for offset in file_offsets.tolist()]
        try:
            starts = self._starts.start_of(addresses).tolist()
        except Unresolvable:  # its file has shrunk or is gone meanwhile
            return [offset_name(offset) for offset in file_offsets.tolist()]
        names = []
        for exact, address, start in zip(
            file_offsets.tolist(), addresses.tolist(), starts, strict=True
        ):
            offset = self._map.file_offset(start) if address != NOWHERE else None
            names.append(offset_name(exact if offset is None else offset))
        return names

    def _load_tables(self) -> list[_Table]:
        self.grew = True
        tables: list[_Table] = []
        try:
            if self.elf.section_of_type(SHT_SYMTAB) is None:
                self._debug = find_debug_file(self.elf, self._path, self._roots)
                if self._debug is None:
                    self._debug = unpack_mini_debug_info(self.elf)
            functions = read_function_table(self.elf, self._debug)
            if functions is not None:
                tables.append(functions)
        except Unresolvable as error:
            self.reason = error.why
        try:
            go = read_go_functions(self.elf)
            if go is not None:
                tables.append(go)
        except Unresolvable as error:
            self.reason = error.why
        plt = find_plt_stubs(self.elf)
        if plt is not None:
            tables.append(plt)
        if not tables and self.reason is Reason.NO_FUNCTION:
            self.reason = Reason.NO_SYMBOLS
        return tables
