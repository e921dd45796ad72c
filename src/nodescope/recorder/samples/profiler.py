"""From drained rings to rows of the open segment: decode, attribute, resolve, intern."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.archive.interning import Interner
from nodescope.archive.schema import ColumnData
from nodescope.errors import SourceError
from nodescope.ingest.samples import SampleRows, intern_samples
from nodescope.numbering import group
from nodescope.perf.decode import Chunk, RecordBatch, RingSamples, decode
from nodescope.perf.kernel_names import KernelNames
from nodescope.perf.naming import ModuleNames
from nodescope.perf.processes import Processes
from nodescope.perf.stacks import Stacks
from nodescope.recorder.samples.novelty import Novelty
from nodescope.sources.cgroups.paths_by_id import CgroupPaths, find_default_hierarchy


class Profiler:
    """Keeps what is known about processes and symbols between batches."""

    def __init__(self, proc: Path, tick_ns: int, novelty: Novelty | None = None) -> None:
        """Without `novelty` every stack is kept whole."""
        self._tick_ns = tick_ns
        self._novelty = novelty
        self.folded = 0  # samples whose stack was folded
        self.kernel_denied: str | None = None
        self._kernel: KernelNames | None = None
        try:
            self._kernel = KernelNames(proc)
        except SourceError as error:
            self.kernel_denied = error.reason
        self._processes = Processes(proc)
        self._modules = ModuleNames(proc=proc)
        self._stacks = Stacks(self._processes, self._modules, self._kernel, novelty)
        self._cgroups = CgroupPaths(find_default_hierarchy(proc))
        self._new_interner()

    def restart(self) -> None:
        """A new segment: number everything anew."""
        self._stacks.restart()
        self._new_interner()

    def _new_interner(self) -> None:
        self._interner = Interner(self._stacks.frames, self._stacks.paths, self._processes.comms)

    def forget(self) -> None:
        """Records were thrown away: what they said is not known any more."""
        self._processes.forget()
        if self._kernel is not None:
            self._kernel.doubt()

    def look_ahead(self, chunks: list[Chunk]) -> None:
        """Open binaries not met before while the processes that run them still live."""
        self._modules.open_new(chunks)

    def process(
        self, chunks: list[Chunk], *, cgroup: bool
    ) -> tuple[RecordBatch, dict[str, ColumnData]]:
        """Decode what the rings held; the rows to append, by table."""
        self._modules.close_idle()
        batch = decode(chunks, cgroup=cgroup)
        if self._kernel is not None:
            self._kernel.follow(batch.code_changes)
            if batch.lost:
                self._kernel.doubt()
        for identifier, path in batch.cgroups:
            self._cgroups.learn(identifier, path)
        samples = batch.samples
        attribution = self._processes.attribute(batch)
        if self._novelty is not None and len(samples):
            self._novelty.advance(int(samples.time_ns.max()))
        paths = self._stacks.resolve(samples, attribution)
        self.folded += int(np.count_nonzero(paths.folded))
        rows = SampleRows(
            samples.time_ns,
            samples.cpu,
            samples.pid,
            samples.tid,
            attribution.comm.astype(np.int64),
            samples.kernel_mode.astype(np.int64),
            paths.user,
            paths.kernel,
            self._cgroup_column(samples),
        )
        before = self._interner.stack_rows
        interned = intern_samples(self._interner, rows, self._tick_ns)
        if self._novelty is not None:
            self._novelty.spend(self._interner.stack_rows - before)
        return batch, interned

    def _cgroup_column(
        self, samples: RingSamples
    ) -> tuple[npt.NDArray[np.int32], list[str]] | None:
        """Return row numbers into a list of paths, where -1 is null; None if none was asked for."""
        if samples.cgroup is None:
            return None
        unique, _, inverse = group(samples.cgroup)
        paths = [self._cgroups.path(identifier) for identifier in unique.tolist()]
        known = sorted({path for path in paths if path is not None})
        number = {path: row for row, path in enumerate(known)}
        numbers = np.array([-1 if path is None else number[path] for path in paths], np.int32)
        return numbers[inverse], known

    def unresolved(self) -> dict[str, int]:
        """How many places could not be named, by reason; each is counted when first met."""
        unnamed = {str(why): count for why, count in self._stacks.unnamed.items() if count}
        return dict(self._modules.failures + Counter(unnamed))

    def close(self) -> None:
        """Let go of every file."""
        self._modules.close()
