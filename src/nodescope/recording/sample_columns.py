"""A segment as numpy columns, each read when it is first asked for.

Sample columns are cut to a window of wall time; the dictionaries they refer to
(`profile`, `stacks`, `frames`) are whole. Text is codes into a list.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nodescope.archive.schema import text_indices
from nodescope.archive.stack_ids import identify_frames, identify_roots, identify_rows
from nodescope.arrays import I16, I32, I64, U64, Bool
from nodescope.errors import CorruptSegment
from nodescope.recording.part import Part
from nodescope.recording.roll_ups import FunctionCounts, RolledFeatures, WideCounts, WidePaths

Rows = TypeVar("Rows", npt.NDArray[np.int32], npt.NDArray[np.int64])


class SampleColumns:
    """One segment between two wall times, the second excluded."""

    def __init__(self, segment: Part, from_ns: int | None = None, to_ns: int | None = None):
        self.segment = segment
        self.from_ns = from_ns
        self.to_ns = to_ns
        self._together: dict[str, I64] = {}  # columns of `samples` before they are cut

    @cached_property
    def whole(self) -> bool:
        """Whether the window covers all of the segment, so that roll-ups may serve."""
        starts = self.from_ns is None or self.from_ns <= self.segment.wall_from_ns
        return starts and (self.to_ns is None or self.to_ns > self.segment.wall_to_ns)

    # -- samples -----------------------------------------------------------

    def read_together(self, *names: str) -> None:
        """Read columns of `samples` that will all be asked for: each is decoded from others."""
        found = self.segment.read("samples", names)
        self._together = {name: _numbers(found, name) for name in names}

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
        return self.segment.read("profile", ["comm", "kernel", "samples"])

    @cached_property
    def profile_stack(self) -> I64:
        """Row of `stacks` of each row of `profile`."""
        return self._rows_in("stacks", self._numbers("profile", "stack"), "profile")

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
        return self._checked_tree(self._stacks.column("depth").to_numpy(), "stacks")

    @cached_property
    def frame(self) -> I32:
        """Row of `frames` of each row of `stacks`."""
        frame: I32 = self._stacks.column("frame").to_numpy()
        return self._rows_in("frames", frame, "stacks")

    @cached_property
    def profile_leaf(self) -> I64:
        """Row of `frames` of the innermost function, by row of `profile`."""
        frame = self.segment.read("stacks", ["frame"]).column("frame").to_numpy()
        leaf: I64 = frame[self.profile_stack].astype(np.int64)
        return self._rows_in("frames", leaf, "stacks")

    # A large tree is not read where its trunk tells as much.

    @property
    def has_trunk(self) -> bool:
        """Whether the tree of stacks is large, so that its trunk was sealed with it."""
        return "trunk" in self.segment.description.tables

    @cached_property
    def _trunk(self) -> Any:
        return self.segment.read("trunk")

    @cached_property
    def trunk_depth(self) -> I16:
        """Depth of each row of `trunk`, in depth-first order."""
        return self._checked_tree(self._trunk.column("depth").to_numpy(), "trunk")

    @cached_property
    def trunk_frame(self) -> I32:
        """Row of `frames` of each row of `trunk`."""
        frame: I32 = self._trunk.column("frame").to_numpy()
        return self._rows_in("frames", frame, "trunk")

    @cached_property
    def profile_trunk(self) -> I64:
        """Innermost row of `trunk` of each row of `profile`; -1 if there is none."""
        rows = self._numbers("profile", "trunk")
        self._rows_in("trunk", rows[rows != -1], "profile")
        return rows

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
    def second(self) -> I64:
        """Monotonic second of each row of `seconds`."""
        return _numbers(self._seconds, "second")

    @property
    def second_samples(self) -> I64:
        """Samples of each row of `seconds`."""
        return _numbers(self._seconds, "user") + _numbers(self._seconds, "kernel")

    def read_functions(self) -> FunctionCounts:
        """Samples of the whole segment by function, from the roll-up."""
        table = self.segment.read("functions")
        frame = self._rows_in("frames", _numbers(table, "frame"), "functions")
        stored = not table.column("id").null_count
        ids = _numbers(table, "id").view(np.uint64) if stored else self._frame_ids[frame]
        return FunctionCounts(frame, _numbers(table, "samples"), _numbers(table, "own"), ids)

    @cached_property
    def features(self) -> RolledFeatures:
        """What comparisons count, of the whole segment."""
        table, seconds = self.segment.read("features"), self.segment.read("feature_seconds")
        comm, comms = _texts(table, "comm")
        frame = _numbers(table, "frame")
        self._rows_in("frames", frame[frame != -1], "features")
        return RolledFeatures(
            comm,
            comms,
            frame,
            _numbers(table, "cpu"),
            _numbers(table, "samples"),
            _numbers(table, "depth"),
            _numbers(table, "id").view(np.uint64),
            self._rows_in("features", _numbers(seconds, "feature"), "feature_seconds"),
            _numbers(seconds, "second"),
            _numbers(seconds, "samples"),
        )

    def count_wide(self, table: str, kernel: bool | None = None) -> WideCounts | None:
        """Return ids and samples of wide paths; None if the segment has none."""
        if table not in self.segment.description.tables:
            return None
        names = ["id", "depth", "samples"] + (["kernel"] if kernel is not None else [])
        found = self.segment.read(table, names)
        if found.column("id").null_count:
            wide = self.read_wide(table, kernel)
            return WideCounts(wide.id, wide.samples, int(wide.samples[wide.depth == 0].sum()))
        ids = found.column("id").to_numpy().view(np.uint64)
        depth, samples = found.column("depth").to_numpy(), _numbers(found, "samples")
        if kernel is not None:
            rows = np.flatnonzero(found.column("kernel").to_numpy(zero_copy_only=False) == kernel)
            ids, depth, samples = ids[rows], depth[rows], samples[rows]
        return WideCounts(ids, samples, int(samples[depth == 0].sum()))

    def read_wide(self, table: str, kernel: bool | None = None) -> WidePaths:
        """Read the wide paths with what they are made of."""
        found = self.segment.read(table)
        if "cpu" in found.column_names:
            root, names = _numbers(found, "cpu"), None
        else:
            root, names = _texts(found, "cgroup" if "cgroup" in found.column_names else "comm")
        depth = self._checked_tree(found.column("depth").to_numpy(), table)
        frame, samples = _numbers(found, "frame"), _numbers(found, "samples")
        self._rows_in("frames", frame[depth > 0], table)
        if found.column("id").null_count:
            ids = self._identify(
                WidePaths(root, depth, frame, samples, np.empty(0, np.uint64), names)
            )
        else:
            ids = found.column("id").to_numpy().view(np.uint64)
        columns = (root, depth, frame, samples, ids)
        if kernel is not None:
            rows = np.flatnonzero(found.column("kernel").to_numpy(zero_copy_only=False) == kernel)
            columns = tuple(each[rows] for each in columns)  # type: ignore[assignment]
        return WidePaths(*columns, names)

    def _identify(self, wide: WidePaths) -> U64:
        """Return the ids of wide paths that were stored without: in a bundle, or long ago."""
        outermost = np.flatnonzero(wide.depth == 0)
        values, code = np.unique(wide.root[outermost], return_inverse=True)
        roots = np.zeros(len(wide.depth), np.uint64)
        roots[outermost] = identify_roots([wide.name(each) for each in values.tolist()])[code]
        own = np.where(wide.depth == 0, np.uint64(0), self._frame_ids[wide.frame])
        return identify_rows(wide.depth, wide.parent, own, roots)

    @cached_property
    def _frame_ids(self) -> U64:
        return identify_frames(self.modules, self.frame_module, self.frame_names, self.frame_kernel)

    def _checked_tree(self, depth: I16, table: str) -> I16:
        if len(depth) and not _is_tree(depth):
            path = self.segment.where(table)
            raise CorruptSegment(path, "its depths are not those of a tree")
        return depth

    def _rows_in(self, table: str, rows: Rows, referring: str) -> Rows:
        """`rows`, if the table has them all: a recording may be somebody else's making."""
        extent = self.segment.description.tables.get(table)
        count = 0 if extent is None else extent.rows
        if len(rows) and not (rows.min() >= 0 and rows.max() < count):
            path = self.segment.where(referring)
            raise CorruptSegment(path, f"it refers to rows that {table} does not have")
        return rows

    def _numbers(self, table: str, name: str) -> I64:
        if table == "samples" and (read := self._together.pop(name, None)) is not None:
            return read
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
