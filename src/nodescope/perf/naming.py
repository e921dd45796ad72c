"""What gives names to the code of modules: `symbols`, put to use.

A file is named by its own symbols, the vdso by its own, anonymous code by the
map its JIT leaves (`perf-PID.map`), which grows while the process runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic

from nodescope.arrays import U64
from nodescope.perf.address_space import Module
from nodescope.perf.decode import Chunk
from nodescope.perf.look_ahead import MappedCode, find_mapped
from nodescope.perf.stacks import UNKNOWN, NamesFunctions
from nodescope.symbols.binaries import ANONYMOUS, Binaries, Limits
from nodescope.symbols.perf_map import PerfMap
from nodescope.symbols.unresolved import Reason

_LIMITS = Limits(table_bytes=20 << 20, descriptors=192, idle_s=180.0)
_MAX_MET = 50_000
_MAX_JITS = 64
_MAX_JITS_AHEAD = 128  # light: a descriptor at most, and nothing is read
_MAX_LOOKS = 16  # at maps, each time the rings were emptied: some 100 µs each
_JIT_REREAD_S = 2.0


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
        self._ahead: OrderedDict[int, _Jit] = OrderedDict()  # not asked for yet
        self._unresolved: Counter[Reason] = Counter()  # code of JITs
        self._met: set[int] = set()  # files, as hashes of device and inode

    @property
    def failures(self) -> Counter[str]:
        """How many places were left without a name, by reason."""
        both = self.binaries.unresolved + self._unresolved
        return Counter({str(reason): count for reason, count in both.items()})

    def open_module(self, module: Module) -> NamesFunctions:
        """What names the code of `module`."""
        if not module.anonymous:
            return self.binaries.open(module.pid, module.path, module.device, module.inode or None)
        jit = self._jits.get(module.pid)
        if jit is None:
            jit = self._ahead.pop(module.pid, None) or self._make_jit(module.pid)
            _keep(self._jits, module.pid, jit, _MAX_JITS)
        self._jits.move_to_end(module.pid)
        return jit

    def open_new(self, chunks: Sequence[Chunk]) -> None:
        """Open what was mapped for the first time: soon its process may be gone.

        A container's binary is reachable through `/proc/PID/root` only while the
        process lives, as is the map of its JIT; once open, it stays readable.
        """
        mapped = find_mapped(chunks, self._met)
        for file in mapped.files:
            self.binaries.open(file.pid, file.path, file.device, file.inode)
        if len(self._met) > _MAX_MET:
            self._met.clear()
        self._look_for_maps(mapped.code)

    def _look_for_maps(self, found: Iterable[MappedCode]) -> None:
        looks = 0
        for code in found:
            jit = self._jits.get(code.pid) or self._ahead.get(code.pid)
            if jit is not None and jit.map.is_open:
                continue
            looks += 1
            if looks > _MAX_LOOKS:
                break
            if jit is None:
                jit = self._make_jit(code.pid)
                _keep(self._ahead, code.pid, jit, _MAX_JITS_AHEAD)
            jit.map.meet(code.time_ns, code.parent)

    def _make_jit(self, pid: int) -> _Jit:
        return _Jit(PerfMap(pid, self._proc), self._unresolved, self._clock)

    def close_idle(self) -> None:
        """Let go of files not asked for lately: they would pin a container that is gone."""
        self.binaries.close_idle()
        now = self._clock()
        oldest = now - self.binaries.limits.idle_s
        for jits in (self._jits, self._ahead):
            for pid in [pid for pid, jit in jits.items() if jit.used_at < oldest]:
                if (self._proc / str(pid)).exists():
                    jits[pid].used_at = now  # it holds its files itself
                else:
                    jits.pop(pid).map.close()

    def close(self) -> None:
        """Let go of every file."""
        self.binaries.close()
        for jits in (self._jits, self._ahead):
            while jits:
                jits.popitem()[1].map.close()


def _keep(jits: OrderedDict[int, _Jit], pid: int, jit: _Jit, most: int) -> None:
    """Put it among the others; the one asked for longest ago has to go for it."""
    jits[pid] = jit
    if len(jits) > most:
        jits.popitem(last=False)[1].map.close()


class _Jit:
    """The anonymous code of one process."""

    module = ANONYMOUS

    def __init__(
        self, perf_map: PerfMap, unresolved: Counter[Reason], clock: Callable[[], float]
    ) -> None:
        self.map = perf_map
        self.used_at = clock()
        self._unresolved = unresolved
        self._clock = clock
        self._read_at = float("-inf")

    def resolve(self, file_offsets: U64) -> list[str]:
        now = self.used_at = self._clock()
        if now - self._read_at >= _JIT_REREAD_S:
            self._read_at = now
            self.map.update()
        names = self.map.resolve(file_offsets)
        unnamed = names.count(None)
        if unnamed:
            self._unresolved[self.map.reason] += unnamed
        return [name or UNKNOWN for name in names]
