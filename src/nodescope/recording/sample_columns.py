"""A segment as numpy columns, each read when it is first asked for.

Sample columns are cut to a window of wall time; the dictionaries they refer to
(`profile`, `stacks`, `frames`) are whole. Text is codes into a list.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nodescope.archive.function_paths import FunctionPaths
from nodescope.archive.schema import text_indices
from nodescope.arrays import I16, I32, I64, Bool
from nodescope.errors import CorruptSegment
from nodescope.recording.part import Part

Rows = TypeVar("Rows", npt.NDArray[np.int32], npt.NDArray[np.int64])


class SampleColumns:
    """One segment between two wall times, the second excluded."""

    def __init__(self, segment: Part, from_ns: int | None = None, to_ns: int | None = None):
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
        rows = self._rows_in("profile", self._numbers("samples", "profile"), "samples")
        return self._cut(rows)  # type: ignore[no-any-return]

    @cached_property
    def _cgroups(self) -> tuple[I64, list[str]]:
        codes, texts = _texts(self.segment.read("samples", ["cgroup"]), "cgroup")
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

    # Their columns are read together: opening a file costs as much as a column of it.

    @cached_property
    def _profile(self) -> Any:
        return self.segment.read("profile")

    @cached_property
    def profile_stack(self) -> I64:
        """Row of `stacks` of each row of `profile`."""
        return self._rows_in("stacks", _numbers(self._profile, "stack"), "profile")

    @cached_property
    def profile_samples(self) -> I64:
        """Samples of the whole segment, by row of `profile`."""
        return _numbers(self._profile, "samples")

    @cached_property
    def profile_kernel(self) -> Bool:
        """Mode, by row of `profile`."""
        return _numbers(self._profile, "kernel").astype(bool)

    @cached_property
    def _comms(self) -> tuple[I64, list[str]]:
        return _texts(self._profile, "comm")

    @property
    def profile_comm(self) -> I64:
        """Code of the comm in `comms`, by row of `profile`."""
        return self._comms[0]

    @property
    def comms(self) -> list[str]:
        """Names of threads."""
        return self._comms[1]

    @cached_property
    def _stacks(self) -> Any:
        return self.segment.read("stacks")

    @cached_property
    def depth(self) -> I16:
        """Depth of each row of `stacks`, in depth-first order."""
        depth: I16 = self._stacks.column("depth").to_numpy()
        if len(depth) and not _is_tree(depth):
            path = self.segment.where("stacks")
            raise CorruptSegment(path, "its depths are not those of a tree")
        return depth

    @cached_property
    def frame(self) -> I32:
        """Row of `frames` of each row of `stacks`."""
        frame: I32 = self._stacks.column("frame").to_numpy()
        return self._rows_in("frames", frame, "stacks")

    @cached_property
    def _frames(self) -> Any:
        return self.segment.read("frames")

    @cached_property
    def frame_names(self) -> list[str]:
        """Function names, by row of `frames`."""
        names: list[str] = self._frames.column("name").to_pylist()
        return names

    @cached_property
    def _modules(self) -> tuple[I64, list[str]]:
        return _texts(self._frames, "module")

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
        return _numbers(self._frames, "kernel").astype(bool)

    # -- roll-ups ----------------------------------------------------------

    @cached_property
    def _seconds(self) -> Any:
        return self.segment.read("seconds")

    @property
    def second_cpu(self) -> I64:
        """Core of each row of `seconds`."""
        return _numbers(self._seconds, "cpu")

    @property
    def second_samples(self) -> I64:
        """Samples of each row of `seconds`."""
        return _numbers(self._seconds, "user") + _numbers(self._seconds, "kernel")

    @cached_property
    def _rolled_up(self) -> tuple[FunctionPaths, I64, list[str]]:
        table = self.segment.read("paths")
        comm, comms = _texts(table, "comm")
        depth: I16 = table.column("depth").to_numpy()
        frame, samples = _numbers(table, "frame"), _numbers(table, "samples")
        function = depth > 0
        process = ~function
        present = np.bincount(comm[process], samples[process], len(comms)).astype(np.int64)
        return (
            FunctionPaths(
                comm[function],
                depth[function] - np.int16(1),
                self._rows_in("frames", frame[function], "paths"),
                samples[function],
            ),
            present,
            comms,
        )

    @property
    def paths(self) -> FunctionPaths:
        """The wide paths; groups are codes in `rolled_comms`."""
        return self._rolled_up[0]

    @property
    def process_samples(self) -> I64:
        """Samples by code in `rolled_comms`."""
        return self._rolled_up[1]

    @property
    def rolled_comms(self) -> list[str]:
        """Names of threads, as the roll-up numbers them."""
        return self._rolled_up[2]

    def _rows_in(self, table: str, rows: Rows, referring: str) -> Rows:
        """`rows`, if the table has them all: a recording may be somebody else's making."""
        extent = self.segment.description.tables.get(table)
        count = 0 if extent is None else extent.rows
        if len(rows) and not (rows.min() >= 0 and rows.max() < count):
            path = self.segment.where(referring)
            raise CorruptSegment(path, f"it refers to rows that {table} does not have")
        return rows

    def _numbers(self, table: str, name: str) -> I64:
        return _numbers(self.segment.read(table, [name]), name)


def _is_tree(depth: I16) -> bool:
    if depth[0] != 0 or depth.min() < 0 or depth.max() == np.iinfo(np.int16).max:
        return False
    return not (depth[1:] > depth[:-1] + np.int16(1)).any()


def _numbers(table: Any, name: str) -> I64:
    numbers: I64 = table.column(name).to_numpy(zero_copy_only=False)
    return numbers if numbers.dtype == np.int64 else numbers.astype(np.int64)


def _texts(table: Any, name: str) -> tuple[I64, list[str]]:
    """Codes, -1 where it is null, and what they stand for."""
    column = table.column(name)
    if column.num_chunks > 1:
        column = column.unify_dictionaries()
    chunks = column.chunks
    if not chunks:
        return np.empty(0, np.int64), []
    codes = np.concatenate([text_indices(chunk) for chunk in chunks]).astype(np.int64)
    return codes, chunks[0].dictionary.to_pylist()
