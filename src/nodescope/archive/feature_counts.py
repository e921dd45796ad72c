"""Counts of what comparisons look at: processes, their functions, kernel functions and cores.

A feature is a process name, a function of it, a function of the kernel whoever called it, or
a process name on a core. Its samples are counted as a whole and, where they are many, by cell
of time (a second of a segment that is sealed, a window of a comparison). A function counts
once per sample, however often it is on the stack; one without a name counts as its binary.

Of stacks so diverse that a segment keeps a trunk of them, the functions on the trunk count
and the innermost one (`graft_leaves`): all others are on paths with a few samples each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nodescope.archive.function_paths import Leaves, Runs, count_keys
from nodescope.archive.stack_ids import identify_texts, mix
from nodescope.arrays import F32, I16, I32, I64, U64, Bool, Integers

Kind = Literal["comm", "function", "kernel", "core"]
KINDS: tuple[Kind, ...] = ("comm", "function", "kernel", "core")
_DENSE = 20_000_000  # cells of a table of (comm, function); beyond that they are sorted
_AT_ONCE = 1 << 19  # counts that are added in one step
_SAMPLES_AT_ONCE = 1 << 18  # a column of 64 bits of all samples would be most of the memory
_LEAVES_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class StackTree:
    """A tree of functions in depth-first order, and where in it each row of `profile` ends."""

    depth: I16
    frame: Integers
    row_of: I64


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions by name: those without one by their binary, kernel code apart."""

    names: list[str]
    kernel: Bool  # by function
    of: I64  # by row of `frames`

    @classmethod
    def of_frames(
        cls, modules: Sequence[str], module_of: I64, names: Sequence[str], kernel: Bool
    ) -> Functions:
        """Number the functions of a segment."""
        binaries = [name_binary(module) for module in modules]
        named = [
            (in_kernel, binaries[module] if is_unnamed(name) else name)
            for in_kernel, module, name in zip(
                kernel.tolist(), module_of.tolist(), names, strict=True
            )
        ]
        number_of = {each: number for number, each in enumerate(dict.fromkeys(named))}
        function = np.fromiter(map(number_of.__getitem__, named), np.int64, len(named))
        in_kernel = np.array([each[0] for each in number_of], bool)
        return cls([name for _, name in number_of], in_kernel, function)


def is_unnamed(name: str) -> bool:
    """Decide whether a row of `frames` has an offset instead of a name."""
    return name[:3] == "+0x"


def name_binary(module: str) -> str:
    """Return what functions without a name are called after."""
    return f"[{module.rpartition('/')[2]}]"


@dataclass(frozen=True, slots=True)
class CountedSamples:
    """Samples by row of `profile`, core and cell of time."""

    row: Integers
    cpu: Integers
    cell: Integers
    cells: int
    comm: I64  # by row of `profile`
    comms: int

    def parts(self) -> Iterator[CountedSamples]:
        """Return them in parts, which bounds the memory of what is made of each sample."""
        for begin in range(0, len(self.row), _SAMPLES_AT_ONCE):
            some = slice(begin, begin + _SAMPLES_AT_ONCE)
            yield replace(self, row=self.row[some], cpu=self.cpu[some], cell=self.cell[some])


@dataclass(frozen=True, slots=True)
class Features:
    """Features of one kind: their samples, and by cell those of the chosen ones."""

    kind: Kind
    key: I64  # a comm, comm × functions + function, a function, or core × comms + comm
    id: U64
    total: I64
    depth: F32  # of functions, on average
    chosen: I64  # places of those that are counted by cell
    counts: I64  # chosen × cells


Choose = Callable[[U64, I64], Bool]  # by id and samples: which are counted by cell


def graft_leaves(depth: I16, frame: Integers, row_of: I64, leaf: Integers) -> StackTree:
    """Return a trunk with the innermost function of each stack (`leaf`) put back onto it.

    `row_of` is the innermost row of the trunk of each row of `profile`, -1 if it has none.
    """
    there = np.append(frame, -1)[row_of] == leaf
    outside = np.flatnonzero(~there)
    many = int(frame.max(initial=0)) + int(leaf.max(initial=0)) + 1
    pair, place = np.unique((row_of[outside] + 1) * many + leaf[outside], return_inverse=True)
    caller, grafted = pair // many - 1, pair % many
    before = np.cumsum(np.bincount(caller + 1, minlength=len(depth) + 1))
    moved = np.arange(len(depth)) + before[: len(depth)]
    at = np.arange(len(pair)) + caller + 1  # behind its caller and what was grafted before
    new_depth = np.empty(len(depth) + len(pair), np.int16)
    new_frame = np.empty(len(new_depth), np.int32)
    new_depth[moved], new_frame[moved] = depth, frame
    new_depth[at], new_frame[at] = np.append(depth, np.int16(-1))[caller] + 1, grafted
    rows = np.append(moved, -1)[row_of]
    rows[outside] = at[place]
    return StackTree(new_depth, new_frame, rows)


def count_features(
    samples: CountedSamples, tree: StackTree, functions: Functions, comms: U64, choose: Choose
) -> list[Features]:
    """Count all features; `comms` are the ids of the process names."""
    own_id = identify_texts(functions.names)
    many, least = samples.comms, int(samples.cpu.min(initial=0))
    cores = int(samples.cpu.max(initial=0)) - least + 1

    def core_of(part: CountedSamples) -> I64:
        core = (part.cpu.astype(np.int64) - least) * many
        core += part.comm[part.row]
        return core

    def core_parts(key: I64) -> tuple[U64, U64]:
        return (key // many + least).astype(np.uint64), comms[key % many]

    by_comm = _count_directly(
        "comm", lambda part: part.comm[part.row], many, samples, lambda key: (comms[key],), choose
    )
    by_function = _count_functions(samples, tree, functions, (comms, own_id), choose)
    by_core = _count_directly("core", core_of, cores * many, samples, core_parts, choose)
    return [by_comm, *by_function, replace(by_core, key=by_core.key + least * many)]


def identify_feature(kind: Kind, *parts: U64) -> U64:
    """Return the ids of features of one kind from the ids of what they are made of."""
    result = np.full(len(parts[0]), KINDS.index(kind) + 1, np.uint64)
    for part in parts:
        result = mix(result, part)
    return result


def _count_directly(
    kind: Kind,
    key_of: Callable[[CountedSamples], I64],
    size: int,
    samples: CountedSamples,
    parts: Callable[[I64], tuple[U64, ...]],
    choose: Choose,
) -> Features:
    """Count a feature that each sample has just one of: its key, below `size`."""
    totals = count_keys(map(key_of, samples.parts()), size)
    keys = np.flatnonzero(totals)
    total = totals[keys].astype(np.int64)
    ids = identify_feature(kind, *parts(keys))
    chosen = np.flatnonzero(choose(ids, total))
    place = np.full(size, -1, np.int64)
    place[keys[chosen]] = np.arange(len(chosen))

    def cells_of(part: CountedSamples) -> I64:
        at = place[key_of(part)]
        inside = np.flatnonzero(at >= 0)
        cell: I64 = at[inside] * samples.cells + part.cell[inside]
        return cell

    counts = count_keys(map(cells_of, samples.parts()), len(chosen) * samples.cells)
    by_cell = counts.astype(np.int64).reshape(-1, samples.cells)
    depth = np.zeros(len(keys), np.float32)
    return Features(kind, keys, ids, total, depth, chosen, by_cell)


def _count_functions(
    samples: CountedSamples,
    tree: StackTree,
    functions: Functions,
    ids: tuple[U64, U64],
    choose: Choose,
) -> list[Features]:
    """Count functions by process name, and those of the kernel alone."""
    comm_id, own_id = ids
    many = len(functions.names)
    rows = np.flatnonzero(np.bincount(samples.row, minlength=len(samples.comm)))
    leaves = Leaves.of(tree.depth, tree.row_of[rows], samples.comm[rows])
    pieces = leaves.pieces().in_order()
    piece, function, depth = pieces.outermost(leaves, functions.of[tree.frame], many)
    cells = _Cells.of(samples, rows[leaves.order])
    start, end = cells.bounds[pieces.leaf][piece], cells.bounds[pieces.end][piece]
    found = _Occurrences(leaves.group[pieces.leaf][piece] * many + function, depth, start, end)
    by_comm = found.count(
        "function",
        lambda key: (comm_id[key // many], own_id[key % many]),
        samples.comms * many,
        cells,
        choose,
    )
    kernel = np.flatnonzero(functions.kernel[function])
    found = _Occurrences(function[kernel], depth[kernel], start[kernel], end[kernel])
    return [by_comm, found.count("kernel", lambda key: (own_id[key],), many, cells, choose)]


@dataclass(frozen=True, slots=True)
class _Occurrences:
    """Where functions are in the tree: by key, with the range of cells below."""

    key: I64
    depth: I16
    start: I64
    end: I64

    def count(
        self,
        kind: Kind,
        parts: Callable[[I64], tuple[U64, ...]],
        size: int,
        cells: _Cells,
        choose: Choose,
    ) -> Features:
        """Sum them by key, and by cell the chosen ones."""
        weight = cells.running[self.end] - cells.running[self.start]
        keys, total, depths = _sum_by_key(self.key, weight, self.depth, size)
        ids = identify_feature(kind, *parts(keys))
        chosen = np.flatnonzero(choose(ids, total))
        at = _positions(keys[chosen], self.key)
        counts = cells.count(at, self.start, self.end, len(chosen))
        return Features(kind, keys, ids, total, depths, chosen, counts)


@dataclass(frozen=True, slots=True)
class _Cells:
    """How many samples each leaf has in each cell, one leaf after the other."""

    bounds: I64  # where a leaf's begin
    cell: I32
    samples: I32
    running: I64  # samples before each, and all
    cells: int

    @classmethod
    def of(cls, samples: CountedSamples, leaf_row: I64) -> _Cells:
        """Lay out the samples by leaf; `leaf_row` is the row of `profile` of each leaf."""
        position = np.zeros(len(samples.comm), np.int64)
        position[leaf_row] = np.arange(len(leaf_row)) * samples.cells
        narrow = np.int32 if len(leaf_row) * samples.cells < 1 << 31 else np.int64
        key = np.empty(len(samples.row), narrow)
        begin = 0
        for part in samples.parts():
            key[begin : begin + len(part.row)] = position[part.row] + part.cell
            begin += len(part.row)
        key.sort()
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
        running = np.append(first, len(key))
        key = key[first]
        del first
        count = np.diff(running).astype(np.int32)
        bounds = np.searchsorted(key, np.arange(len(leaf_row) + 1) * samples.cells)
        cell = (key % samples.cells).astype(np.int32)
        return cls(bounds, cell, count, running, samples.cells)

    def count(self, feature: I64, start: I64, end: I64, features: int) -> I64:
        """Return samples by feature and cell; a feature has ranges, -1 is none that counts."""
        counts = np.zeros(features * self.cells, np.int64)
        some = np.flatnonzero(feature >= 0)
        feature, start, length = feature[some], start[some], (end - start)[some]
        before = np.append(0, np.cumsum(length))
        begin = 0
        while begin < len(some):
            stop = int(np.searchsorted(before, before[begin] + _AT_ONCE, side="right")) - 1
            stop = max(begin + 1, stop)
            size = length[begin:stop]
            place = np.arange(before[begin], before[stop])
            place += np.repeat(start[begin:stop] - before[begin:stop], size)
            pair = np.repeat(feature[begin:stop] * self.cells, size) + self.cell[place]
            added = np.bincount(pair, self.samples[place], len(counts))
            counts += added.astype(np.int64)
            begin = stop
        return counts.reshape(-1, self.cells)


def _positions(keys: I64, values: I64) -> I64:
    """Return where each value stands in `keys`, which are in order; -1 where it does not."""
    if not len(keys):
        return np.full(len(values), -1, np.int64)
    size = int(keys[-1]) + 1
    if size > _DENSE:
        at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[at] == values, at, -1)
    place = np.full(max(size, int(values.max(initial=0)) + 1), -1, np.int64)
    place[keys] = np.arange(len(keys))
    return place[values]


def _sum_by_key(key: I64, weight: I64, depth: I16, size: int) -> tuple[I64, I64, F32]:
    """Return the distinct keys in order, the sum of their weights, and their mean depth."""
    if size <= _DENSE:
        totals = np.bincount(key, weight, size)
        depths = np.bincount(key, weight * depth, size)
        keys = np.flatnonzero(totals)
        totals, depths = totals[keys], depths[keys]
    else:
        keys, inverse = np.unique(key, return_inverse=True)
        totals = np.bincount(inverse, weight, len(keys))
        depths = np.bincount(inverse, weight * depth, len(keys))
    return keys, totals.astype(np.int64), (depths / np.maximum(totals, 1)).astype(np.float32)


def count_by_frame(
    depth: I16, frame: Integers, leaf: I64, count: I64, frames: int
) -> tuple[I64, I64]:
    """Return samples by row of `frames`: of stacks with that function, and of its own.

    A function counts once per sample, however often it is on the stack. Leaves are taken in
    parts, which bounds the memory of a large tree.
    """
    total = np.zeros(frames, np.int64)
    order = np.argsort(leaf, kind="stable")
    runs = Runs(depth)
    for begin in range(0, len(order), _LEAVES_AT_ONCE):
        part = order[begin : begin + _LEAVES_AT_ONCE]
        leaves = Leaves.of(depth, leaf[part], np.zeros(len(part), np.int64))
        leaves = replace(leaves, runs=runs)
        running = np.zeros(len(part) + 1, np.int64)
        np.cumsum(count[part][leaves.order], out=running[1:])
        pieces = leaves.pieces().in_order()
        samples = running.take(pieces.end) - running.take(pieces.leaf)
        piece, found, _ = pieces.outermost(leaves, frame, frames)
        total += np.bincount(found, samples.take(piece), frames).astype(np.int64)
    return total, np.bincount(frame[leaf], count, frames).astype(np.int64)
