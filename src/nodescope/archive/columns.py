"""A segment as numpy columns, each read when it is first asked for.

Sample columns are cut to a window of wall time; the dictionaries they refer to
(`profile`, `stacks`, `frames`) are whole. Text is codes into a list.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from nodescope.archive.reader import Segment

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]


class Columns:
    """One segment between two wall times, the second excluded."""

    def __init__(self, segment: Segment, from_ns: int | None = None, to_ns: int | None = None):
        self.segment = segment
        self.from_ns = from_ns
        self.to_ns = to_ns

    @cached_property
    def whole(self) -> bool:
        """Whether the window covers all of the segment, so that roll-ups may serve."""
        starts = self.from_ns is None or self.from_ns <= self.segment.wall_from_ns
        return starts and (self.to_ns is None or self.to_ns > self.segment.wall_to_ns)

    # -- samples -----------------------------------------------------------

    @cached_property
    def _times(self) -> tuple[I64, Bool | None]:
        ticks = self._numbers("samples", "tick")
        times = self.segment.wall_ns(ticks * self.segment.tick_ns)
        if self.whole:
            return times, None
        inside = np.ones(len(times), bool)
        if self.from_ns is not None:
            inside &= times >= self.from_ns
        if self.to_ns is not None:
            inside &= times < self.to_ns
        return times[inside], inside

    @cached_property
    def time_ns(self) -> I64:
        """Wall time of each sample in the window."""
        return self._times[0]

    def _cut(self, column: Any) -> Any:
        inside = self._times[1]
        return column if inside is None else column[inside]

    @cached_property
    def cpu(self) -> I64:
        """Core of each sample."""
        return self._cut(self._numbers("samples", "cpu"))  # type: ignore[no-any-return]

    @cached_property
    def pid(self) -> I64:
        """Process of each sample."""
        return self._cut(self._numbers("samples", "pid"))  # type: ignore[no-any-return]

    @cached_property
    def thread(self) -> I64:
        """Thread of each sample: its id minus that of its process."""
        return self._cut(self._numbers("samples", "thread"))  # type: ignore[no-any-return]

    @cached_property
    def profile(self) -> I64:
        """Row of `profile` of each sample."""
        return self._cut(self._numbers("samples", "profile"))  # type: ignore[no-any-return]

    @cached_property
    def _cgroups(self) -> tuple[I64, list[str]]:
        codes, texts = self._texts("samples", "cgroup")
        return self._cut(codes), texts

    @property
    def cgroup(self) -> I64:
        """Code of each sample's cgroup in `cgroups`; -1 where it is not known."""
        return self._cgroups[0]

    @property
    def cgroups(self) -> list[str]:
        """Paths of cgroups."""
        return self._cgroups[1]

    # -- dictionaries ------------------------------------------------------

    @cached_property
    def profile_stack(self) -> I64:
        """Row of `stacks` of each row of `profile`."""
        return self._numbers("profile", "stack")

    @cached_property
    def profile_samples(self) -> I64:
        """Samples of the whole segment, by row of `profile`."""
        return self._numbers("profile", "samples")

    @cached_property
    def profile_kernel(self) -> Bool:
        """Mode, by row of `profile`."""
        return self._numbers("profile", "kernel").astype(bool)

    @cached_property
    def _comms(self) -> tuple[I64, list[str]]:
        return self._texts("profile", "comm")

    @property
    def profile_comm(self) -> I64:
        """Code of the comm in `comms`, by row of `profile`."""
        return self._comms[0]

    @property
    def comms(self) -> list[str]:
        """Names of threads."""
        return self._comms[1]

    @cached_property
    def depth(self) -> I64:
        """Depth of each row of `stacks`, in depth-first order."""
        return self._numbers("stacks", "depth")

    @cached_property
    def frame(self) -> I64:
        """Row of `frames` of each row of `stacks`."""
        return self._numbers("stacks", "frame")

    @cached_property
    def frame_names(self) -> list[str]:
        """Function names, by row of `frames`."""
        names: list[str] = self.segment.read("frames", ["name"]).column("name").to_pylist()
        return names

    @cached_property
    def _modules(self) -> tuple[I64, list[str]]:
        return self._texts("frames", "module")

    @property
    def frame_module(self) -> I64:
        """Code of the module in `modules`, by row of `frames`."""
        return self._modules[0]

    @property
    def modules(self) -> list[str]:
        """Binaries and kernel modules."""
        return self._modules[1]

    @cached_property
    def frame_kernel(self) -> Bool:
        """Whether it is kernel code, by row of `frames`."""
        return self._numbers("frames", "kernel").astype(bool)

    # -- reading -----------------------------------------------------------

    def _numbers(self, table: str, name: str) -> I64:
        column = self.segment.read(table, [name]).column(name)
        numbers: I64 = column.to_numpy(zero_copy_only=False)
        return numbers if numbers.dtype == np.int64 else numbers.astype(np.int64)

    def _texts(self, table: str, name: str) -> tuple[I64, list[str]]:
        column = self.segment.read(table, [name]).column(name)
        chunks = column.chunks
        if len(chunks) > 1:
            column = column.unify_dictionaries()
            chunks = column.chunks
        if not chunks:
            return np.empty(0, np.int64), []
        codes = np.concatenate(
            [
                np.nan_to_num(chunk.indices.to_numpy(zero_copy_only=False), nan=-1)
                for chunk in chunks
            ]
        ).astype(np.int64)
        return codes, chunks[0].dictionary.to_pylist()
