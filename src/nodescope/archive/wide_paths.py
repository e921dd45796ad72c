"""The roll-ups of a segment with many samples: its wide paths, in every shape that is asked for.

A flame graph of hours shows no path with less than 1/4000 of the samples. So each segment
keeps, when it is sealed, the paths with at least half of that: below processes, cores and
cgroups, by mode, and from the innermost function outwards. Each path carries its id
(`stack_ids`), so that hours are added up by id, and only what is shown is named.

Where stacks are so diverse that their tree is large, the part of it with at least
`TRUNK_SAMPLES` samples is kept as well, with the way from each stack to it: a flame graph of a few
seconds, of one process or one core then needs not read the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.archive.caller_paths import to_depth_first, walk_up
from nodescope.archive.function_paths import (
    FunctionPaths,
    Runs,
    Trunk,
    count_keys,
    cut_tree,
    find_paths,
    narrow_trunk,
)
from nodescope.archive.schema import arrow_schema, combine, empty_table, make_numbers, make_text
from nodescope.archive.schema import text_indices as indices_of
from nodescope.archive.stack_ids import identify_frames, identify_roots, identify_rows
from nodescope.arrays import I16, I32, I64, U64, Bool
from nodescope.records import WIDE_PATHS
from nodescope.records.tables import NARROW, TRUNK_SAMPLES

Array = NDArray[Any]
MANY = 200_000  # samples; with fewer, and a small tree, stacks are read as fast
_AT_ONCE = 1 << 18  # samples
LARGE_TREE = 500_000  # rows of `stacks`; with fewer they are read as fast as a trunk


@dataclass(frozen=True)
class CountedSegment:
    """What a segment counted: its tree of stacks, its profile, and its samples."""

    depth: I16
    frame: I32
    frames: Any  # the table
    stack: I64  # by row of `profile`
    comm: Any  # text
    kernel: Bool
    count: I64
    profile: Array  # by sample
    cpu: Array
    second: Array
    cgroup: Array
    cgroups: Sequence[str]

    @property
    def is_rolled_up(self) -> bool:
        """Whether roll-ups pay: their size hardly depends on that of the segment."""
        if len(self.depth) >= LARGE_TREE:
            return len(self.profile) * NARROW >= TRUNK_SAMPLES
        return len(self.profile) >= MANY

    @cached_property
    def trunk(self) -> Trunk | None:
        """The part of the tree that is worth reading alone; None if the tree is small."""
        if not self.is_rolled_up or len(self.depth) < LARGE_TREE:
            return None
        return cut_tree(self.depth, self.frame, self.stack, self.count, TRUNK_SAMPLES)

    def roll_up(self) -> dict[str, Any]:
        """Make all tables of wide paths; without rows where samples are few."""
        if not self.is_rolled_up:
            return {table.name: empty_table(table.name) for table in WIDE_PATHS}
        comm, comms = indices_of(self.comm).astype(np.int64), self.comm.dictionary.to_pylist()
        roots, texts = identify_roots(comms), make_text(np.arange(len(comms)), comms)
        made = {
            "paths": self._table("paths", self._below(comm, self.count), roots, [texts]),
            "caller_paths": self._table("caller_paths", self._callers(comm), roots, [texts]),
            "mode_paths": self._by_mode(comm, roots, texts),
        }
        cpus, core = _number(self.cpu)
        names = [f"cpu {cpu}" for cpu in cpus.tolist()]
        wide = self._below_samples(core)
        made["core_paths"] = self._table("core_paths", wide, identify_roots(names), [cpus])
        names = [*self.cgroups, "[unknown]"]
        known = np.where(self.cgroup < 0, np.int32(len(self.cgroups)), self.cgroup)
        texts = make_text(np.r_[np.arange(len(self.cgroups)), -1], list(self.cgroups))
        wide = self._below_samples(known)
        made["cgroup_paths"] = self._table("cgroup_paths", wide, identify_roots(names), [texts])
        return made

    # -- shapes ------------------------------------------------------------

    @cached_property
    def wide(self) -> Trunk:
        """The tree without what is narrow in the whole, and so in any part."""
        fewest = _fewest(len(self.profile))
        if self.trunk is None:
            return cut_tree(self.depth, self.frame, self.stack, self.count, fewest)
        return narrow_trunk(self.trunk, self.count, fewest)

    def _below(self, group: I64, count: I64, fewest: int | None = None) -> _Grouped:
        """Wide paths below groups of rows of `profile`."""
        present = np.bincount(group, count).astype(np.int64)
        return self._find(self.wide.row_of, group, count, present, fewest)

    def _below_samples(self, group: Array) -> _Grouped:
        """Wide paths below groups of samples."""
        size = len(self.wide.depth) + 1
        row_of, groups = self.wide.row_of + 1, int(group.max(initial=0)) + 1
        # In parts: a column of 64 bits of all samples would be most of the memory.
        parts = (slice(at, at + _AT_ONCE) for at in range(0, len(group), _AT_ONCE))
        keys = (group[part] * np.int64(size) + row_of[self.profile[part]] for part in parts)
        pairs = count_keys(keys, groups * size)
        key = np.flatnonzero(pairs)
        present = np.bincount(group).astype(np.int64)
        return self._find(key % size - 1, key // size, pairs[key].astype(np.int64), present)

    def _find(
        self, row: I64, group: I64, count: I64, present: I64, fewest: int | None = None
    ) -> _Grouped:
        inside = np.flatnonzero(row >= 0)
        least = _fewest(len(self.profile)) if fewest is None else fewest
        wide = self.wide
        found = find_paths(wide.depth, wide.frame, row[inside], group[inside], count[inside], least)
        return _Grouped(found, present)

    def _by_mode(self, comm: I64, roots: U64, texts: Any) -> Any:
        parts = []
        for kernel in (False, True):
            rows = np.flatnonzero(self.kernel == kernel)
            count = self.count[rows]
            found = find_paths(
                self.depth, self.frame, self.stack[rows], comm[rows], count, _fewest(count.sum())
            )
            present = np.bincount(comm[rows], count, len(roots)).astype(np.int64)
            modes = np.full(len(roots), kernel)
            found_in = _Grouped(found, present)
            parts.append(self._table("mode_paths", found_in, roots, [modes, texts]))
        return pa.concat_tables(parts)

    def _callers(self, comm: I64) -> _Grouped:
        fewest = _fewest(len(self.profile))
        levels = walk_up(Runs(self.depth), self.frame, self.stack, comm, self.count, fewest)
        present = np.bincount(comm, self.count).astype(np.int64)
        return _Grouped(to_depth_first(levels), present)

    # -- tables ------------------------------------------------------------

    @cached_property
    def frame_columns(self) -> tuple[list[str], I64, list[str], Bool]:
        """Modules, and by row of `frames` which one, the name, and whether it is kernel code."""
        texts = combine(self.frames.column("module"))
        names = self.frames.column("name").to_pylist()
        kernel = self.frames.column("kernel").to_numpy(zero_copy_only=False)
        return texts.dictionary.to_pylist(), indices_of(texts).astype(np.int64), names, kernel

    @cached_property
    def frame_ids(self) -> U64:
        """The id of each row of `frames`."""
        return identify_frames(*self.frame_columns)

    def _table(self, name: str, wide: _Grouped, roots: U64, labels: list[Any]) -> Any:
        """The paths with their roots before them; `labels` are columns by group."""
        group, depth, frame, samples = wide.with_roots()
        parent = Runs(depth).parent
        # A root's own id is not a function's: its path's id is put in its place below.
        own = np.where(depth == 0, np.uint64(0), self.frame_ids[frame])
        ids = identify_rows(depth, parent, own, np.where(depth == 0, roots[group], np.uint64(0)))
        columns = [_taken(label, group) for label in labels]
        columns += [
            make_numbers(depth),
            make_numbers(frame.astype(np.int32)),
            make_numbers(samples.astype(np.int32)),
            make_numbers(ids.view(np.int64)),
        ]
        return pa.Table.from_arrays(columns, schema=arrow_schema(name))


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Wide paths by group, and the samples of each group."""

    paths: FunctionPaths
    present: I64

    def with_roots(self) -> tuple[I64, I16, I64, I64]:
        """Group, depth, frame and samples of the groups that occur and of their paths."""
        found, some = self.paths, np.flatnonzero(self.present)
        group = np.r_[some, found.group]
        order = np.argsort(group, kind="stable")
        depth = np.r_[np.zeros(len(some), np.int16), found.depth + np.int16(1)]
        frame = np.r_[np.full(len(some), -1, np.int64), found.frame]
        samples = np.r_[self.present[some], found.total]
        return group[order], depth[order], frame[order], samples[order]


def _fewest(samples: int) -> int:
    return max(1, int(samples * NARROW))


def _number(values: Array) -> tuple[Array, I32]:
    """The distinct values in order, and which of them each one is."""
    least = int(values.min(initial=0))
    there = np.bincount(values - least)
    found = np.flatnonzero(there)
    number = np.zeros(len(there), np.int32)
    number[found] = np.arange(len(found))
    return (found + least).astype(values.dtype), number[values - least]


def _taken(label: Any, group: I64) -> Any:
    """A column of labels by group, one for each row."""
    if isinstance(label, np.ndarray):
        return make_numbers(label[group])
    return make_text(indices_of(label)[group], label.dictionary)
