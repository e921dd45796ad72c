"""What gives names to the code of modules and of the kernel: `symbols`, put to use.

A file is named by its own symbols, the vdso by its own, anonymous code by the
map its JIT leaves (`perf-PID.map`), which grows while the process runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

import numpy as np

from nodescope.errors import SourceError
from nodescope.sources.perf.address_space import Module
from nodescope.sources.perf.decode import I64, U64, Chunk, mapped_files
from nodescope.sources.perf.stacks import UNKNOWN, NamesFunctions
from nodescope.sources.symbols.binaries import ANONYMOUS, Binaries, Limits
from nodescope.sources.symbols.kallsyms import KernelSymbols, read_kallsyms
from nodescope.sources.symbols.perf_map import PerfMap

_MAX_JITS = 64
_LIMITS = Limits(table_bytes=20 << 20, descriptors=192, idle_s=180.0)
_MAX_MET = 50_000
_JIT_REREAD_S = 2.0
_KERNEL_REREAD_S = 60.0


class ModuleNames:
    """Opens modules; keeps the maps of the JITs that were asked for lately."""

    def __init__(
        self,
        binaries: Binaries | None = None,
        proc: Path = Path("/proc"),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.binaries = binaries or Binaries(proc, limits=_LIMITS)
        self._proc = proc
        self._clock = clock
        self._jits: OrderedDict[int, _Jit] = OrderedDict()
        self._met: set[int] = set()  # files, as hashes of device and inode

    @property
    def failures(self) -> Counter[str]:
        """How many frames were left unresolved, by reason."""
        return Counter({str(reason): count for reason, count in self.binaries.unresolved.items()})

    def open_module(self, module: Module) -> NamesFunctions:
        """What names the code of `module`."""
        if not module.anonymous:
            return self.binaries.open(module.pid, module.path, module.device, module.inode or None)
        jit = self._jits.get(module.pid)
        if jit is None:
            jit = self._jits[module.pid] = _Jit(module.pid, self._proc, self._clock)
            if len(self._jits) > _MAX_JITS:
                self._jits.popitem(last=False)[1].close()
        self._jits.move_to_end(module.pid)
        return jit

    def open_new(self, chunks: Sequence[Chunk]) -> None:
        """Open files that were mapped for the first time: soon their process may be gone.

        A container's binary is reachable through `/proc/PID/root` only while the
        process lives; once open, it stays readable.
        """
        for pid, path, device, inode in mapped_files(chunks, self._met):
            self.binaries.open(pid, path, device, inode)
        if len(self._met) > _MAX_MET:
            self._met.clear()

    def close_idle(self) -> None:
        """Let go of files not asked for lately: they would pin a container that is gone."""
        self.binaries.close_idle()

    def close(self) -> None:
        """Let go of every file."""
        self.binaries.close()
        while self._jits:
            self._jits.popitem()[1].close()


class _Jit:
    """The anonymous code of one process."""

    module = ANONYMOUS

    def __init__(self, pid: int, proc: Path, clock: Callable[[], float]) -> None:
        self._map = PerfMap(pid, proc)
        self._clock = clock
        self._read_at = float("-inf")

    def resolve(self, file_offsets: U64) -> list[str]:
        now = self._clock()
        if now - self._read_at >= _JIT_REREAD_S:
            self._read_at = now
            self._map.update()
        return [name or UNKNOWN for name in self._map.resolve(file_offsets)]

    def close(self) -> None:
        self._map.close()


class KernelNames:
    """The kernel's symbols, read again when code appears that they do not cover."""

    def __init__(self, proc: Path = Path("/proc"), clock: Callable[[], float] = monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._symbols: KernelSymbols = read_kallsyms(proc)
        self._read_at = clock()
        self._stale = False
        self.generation = 0

    def changed(self) -> None:
        """Note that the kernel said its symbols changed: a module or BPF program came."""
        self._stale = True

    def lookup(self, addresses: U64) -> I64:
        """The row of each address, or -1."""
        rows = self._symbols.lookup(addresses)
        unknown = rows < 0
        if unknown.any() and self._stale and self._clock() - self._read_at >= _KERNEL_REREAD_S:
            self._read_again()
            rows = self._symbols.lookup(addresses)
        return np.asarray(rows, np.int64)

    def frame(self, row: int) -> tuple[str, str]:
        """Module and name of a row."""
        return self._symbols.module(row), self._symbols.name(row)

    def _read_again(self) -> None:
        self._read_at = self._clock()
        try:
            self._symbols = read_kallsyms(self._proc)
        except SourceError:
            return  # what was known stays true
        self._stale = False
        self.generation += 1
