"""Names for the code of a capture that was taken at another time, maybe elsewhere.

A build-id decides. The kernel is named by the running one's symbols if it is
the same build, else by what `perf` put into its build-id cache (`~/.debug`),
else its frames keep their addresses. A kernel is loaded at another place at
each boot (KASLR): the capture says where `_text` was, and addresses are moved
by the difference; modules lie elsewhere then, and are not named.

User code is named by the binaries of this machine or of the cache whose
build-id, or device and inode, are the capture's; JIT code by the map that its
process left in `/tmp`. What is not found keeps its module and offset.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.errors import SourceError
from nodescope.exchange.perf_data.header import PerfHeader
from nodescope.perf.address_space import Module
from nodescope.perf.decode import Chains
from nodescope.perf.stacks import UNKNOWN, NamesFunctions
from nodescope.sources.kernel_files import read_text
from nodescope.symbols.binaries import ANONYMOUS, Binaries, Limits
from nodescope.symbols.kallsyms import (
    MAX_FILE_BYTES,
    KernelSymbols,
    parse_kallsyms,
    read_kallsyms,
)
from nodescope.symbols.perf_map import FileOwner, PerfMap

# An import is short and may take more than the recorder, but not all of the machine.
_LIMITS = Limits(table_bytes=96 << 20, descriptors=256, believe_s=3600, idle_s=3600)
_NOTE_GNU_BUILD_ID = 3
BY_BUILD_ID = (0xFFFFFFFF, 0xFFFFFFFF)  # a device that cannot be: the inode is a number of ours
BY_PATH = (0xFFFFFFFE, 0xFFFFFFFF)


def parse_notes(data: bytes) -> bytes | None:
    """The build-id in `/sys/kernel/notes` or any ELF note section."""
    at = 0
    while at + 12 <= len(data):
        name_bytes, bytes_, kind = struct.unpack_from("<III", data, at)
        name_at = at + 12
        start = name_at + (name_bytes + 3 & ~3)
        if kind == _NOTE_GNU_BUILD_ID and data[name_at : name_at + 4] == b"GNU\0":
            return data[start : start + bytes_] or None
        at = start + (bytes_ + 3 & ~3)
    return None


def read_running_build_id(sys: Path = Path("/sys")) -> bytes | None:
    """Read the build id of the running kernel; None where it is not readable."""
    try:
        with open(sys / "kernel/notes", "rb") as file:
            return parse_notes(file.read(1 << 16))
    except OSError:
        return None


def cache_path(build_id: bytes, name: str, home: Path | None = None) -> Path:
    """Where perf's build-id cache has `elf` or `kallsyms` of a build."""
    digits = build_id.hex()
    folder = home or Path(os.path.expanduser("~"))
    return folder / ".debug/.build-id" / digits[:2] / digits[2:] / name


@dataclass(frozen=True, slots=True)
class CapturedKernel:
    """Kernel symbols, moved to where the captured kernel was."""

    symbols: KernelSymbols
    moved: int = 0  # what to add to a captured address, modulo 2^64
    generation: int = 0

    def restart(self) -> None:
        """Symbols of a capture never change."""

    def find_eras(self, chains: Chains, times_ns: I64) -> tuple[I64, I64]:
        """None: what came and went during a capture is not followed."""
        del chains, times_ns
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def lookup(self, addresses: U64, times_ns: I64) -> I64:
        """The row of each address, or -1."""
        del times_ns
        if not self.moved:
            return self.symbols.lookup(addresses)
        rows = self.symbols.lookup(addresses + np.uint64(self.moved))
        core = self.symbols.module_indexes[np.maximum(rows, 0)] == 0
        return np.where(core, rows, -1)

    def frame(self, row: int) -> tuple[str, str]:
        """Module and name of a row."""
        return self.symbols.module(row), self.symbols.name(row)


def find_kernel(
    header: PerfHeader, text: int | None, proc: Path = Path("/proc"), sys: Path = Path("/sys")
) -> tuple[CapturedKernel | None, str]:
    """The symbols of the captured kernel, or why there are none."""
    wanted, running = header.kernel_build_id, read_running_build_id(sys)
    release = read_text(proc / "sys/kernel/osrelease")
    host = read_text(proc / "sys/kernel/hostname")
    symbols: KernelSymbols | None = None
    why = "the file does not say which kernel it is of"
    # Without a build-id: this machine, this release, and loaded at the same place.
    alike = wanted is None and header.kernel == release and header.hostname in (None, host)
    if (wanted is not None and wanted == running) or (alike and text is not None):
        try:
            symbols = read_kallsyms(proc)
        except SourceError as error:
            why = error.reason
        if symbols is not None and wanted is None and _find_text(symbols) != text:
            symbols = None
    if symbols is None and wanted is not None:
        path = cache_path(wanted, "kallsyms")
        try:
            with open(path, "rb") as file:
                symbols = parse_kallsyms(file.read(MAX_FILE_BYTES))
        except OSError:
            why = f"its build {wanted.hex()} is not the one that runs here, nor in ~/.debug"
        except SourceError as error:
            why = error.reason
    if symbols is None:
        return None, why
    here = _find_text(symbols)
    moved = 0 if text is None or here is None else (here - text) & 0xFFFFFFFFFFFFFFFF
    return CapturedKernel(symbols, moved), ""


def _find_text(symbols: KernelSymbols) -> int | None:
    """Where `_text` is; several symbols share its address, so it is the lowest of the core."""
    core = symbols.starts[(symbols.module_indexes == 0) & (symbols.starts >= np.uint64(1 << 63))]
    return int(core[0]) if len(core) else None


class CapturedModules:
    """Opens the binaries of a capture: by build-id, else by device and inode."""

    def __init__(self, header: PerfHeader, proc: Path = Path("/proc")) -> None:
        self.binaries = Binaries(proc, limits=_LIMITS)
        self.build_ids: list[bytes] = []  # of mappings that carry their own
        self._numbers: dict[object, int] = {}
        host = read_text(proc / "sys/kernel/hostname")
        self._is_here = header.hostname is None or header.hostname == host
        named: dict[str, set[bytes]] = {}
        for each in header.build_ids:
            named.setdefault(each.path, set()).add(each.build_id)
        # A path with two builds is of two containers: which one is not told by the path.
        self._by_path = {path: ids.copy().pop() for path, ids in named.items() if len(ids) == 1}
        self._jits: dict[int, _CapturedJit] = {}

    def number(self, key: bytes | str) -> int:
        """A number, from 1 on, for a build-id or a path: stands in for an inode."""
        number = self._numbers.get(key)
        if number is None:
            self.build_ids.append(key if isinstance(key, bytes) else b"")
            number = self._numbers[key] = len(self.build_ids)
        return number

    @property
    def failures(self) -> Counter[str]:
        """How many binaries were not found, by reason."""
        return Counter({str(why): count for why, count in self.binaries.failures.items()})

    def open_module(self, module: Module) -> NamesFunctions:
        """Open the names of the code of `module`."""
        if module.anonymous:
            return self._open_jit(module.pid)
        device: tuple[int, int] | None = module.device
        inode: int | None = module.inode or None
        build_id = self._by_path.get(module.path)
        if module.device in (BY_BUILD_ID, BY_PATH):
            if module.device == BY_BUILD_ID and 0 < module.inode <= len(self.build_ids):
                build_id = self.build_ids[module.inode - 1]
            device = inode = None
        if build_id is None and inode is None and not self._is_here and module.path[:1] == "/":
            # Only a path, of another machine: a file of that name here is another file.
            return _Nameless(module.path)
        binary = self.binaries.open(module.pid, module.path, device, inode, build_id)
        if binary.image is None and binary.reason is not None and build_id is not None:
            cached = cache_path(build_id, "elf")
            if cached.exists():
                found = self.binaries.open(0, str(cached), None, None, build_id)
                if found.image is not None:
                    return _Renamed(module.path, found)
        return binary

    def _open_jit(self, pid: int) -> NamesFunctions:
        jit = self._jits.get(pid)
        if jit is None:
            jit = self._jits[pid] = _CapturedJit(pid if self._is_here else None)
        return jit

    def close(self) -> None:
        """Let go of every file."""
        self.binaries.close()
        for jit in self._jits.values():
            jit.close()


@dataclass(frozen=True, slots=True)
class _Renamed:
    """A binary found elsewhere, under the name its process knew."""

    module: str
    found: NamesFunctions

    def resolve(self, file_offsets: U64) -> list[str]:
        return self.found.resolve(file_offsets)


@dataclass(frozen=True, slots=True)
class _Nameless:
    """A binary that is not here."""

    module: str

    def resolve(self, file_offsets: U64) -> list[str]:
        return [f"+0x{offset:x}" for offset in file_offsets.tolist()]


class _LeftMap(PerfMap):
    """The map a process left in `/tmp`, whether or not it still runs."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self._proc = Path("/proc/self")

    def _read_status(self, process: Path) -> FileOwner:
        del process
        return FileOwner(os.geteuid(), self._pid)


class _CapturedJit:
    """The anonymous code of one process."""

    module = ANONYMOUS

    def __init__(self, pid: int | None) -> None:
        self._map = None if pid is None else _LeftMap(pid)
        while self._map is not None and self._map.update():
            pass

    def resolve(self, file_offsets: U64) -> list[str]:
        if self._map is None:
            return [UNKNOWN] * len(file_offsets)
        return [name or UNKNOWN for name in self._map.resolve(file_offsets)]

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
