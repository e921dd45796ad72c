"""What a comparison counts: processes, their functions, kernel functions, and cores.

Samples of a segment are counted once by (window of time, row of `profile`); rows
are then folded into features. A function counts once per sample, however often
it recurs on the stack. A function without a name counts as its binary.

Per window of time are counted the features that may matter: those asked for, and
those with at least `FOLDED` of the segment's samples. Of the rest only the sum is
kept: a segment has tens of thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nodescope.analysis.filter import Filter
from nodescope.analysis.tree import I64, U64, Bool, Tree, mix
from nodescope.archive.columns import Columns

Kind = Literal["comm", "function", "kernel", "core"]
KINDS: tuple[Kind, ...] = ("comm", "function", "kernel", "core")
FOLDED = 0.002  # of a segment's samples
_DENSE = 20_000_000  # cells of a table of (comm, function); beyond that they are sorted
F32 = npt.NDArray[np.float32]


class Feature(NamedTuple):
    """A thing whose samples are counted."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class Vocabulary:
    """What the features of one part are called; `key` is a number of the part's own."""

    comms: list[str]
    functions: list[str]

    def name(self, kind: Kind, key: int) -> Feature:
        """A feature by its kind and key."""
        if kind == "comm":
            return Feature(kind, self.comms[key])
        if kind == "kernel":
            return Feature(kind, self.functions[key])
        if kind == "function":
            comm, function = divmod(key, len(self.functions))
            return Feature(kind, f"{self.comms[comm]};{self.functions[function]}")
        cpu, comm = divmod(key, len(self.comms))
        return Feature(kind, f"cpu {cpu};{self.comms[comm]}")


@dataclass(frozen=True)
class Block:
    """Counts of one part of a recording.

    A feature is a 64-bit id, the same in all parts of one process's lifetime; names
    are made only of those that are shown.
    """

    feature: U64  # in order
    total: I64  # samples of each feature, all windows together
    kind: npt.NDArray[np.int8]
    key: I64  # in the vocabulary
    depth: F32  # of functions, on average
    folded: U64  # features that are also counted by window …
    first: int  # … from this window on
    counts: I64  # folded × windows
    samples: I64  # all samples, by window
    vocabulary: Vocabulary

    def describe(self, feature: int) -> tuple[Feature, float] | None:
        """What a feature is called, and how deep it lies; None if it is not here."""
        at = int(np.searchsorted(self.feature, np.uint64(feature)))
        if at == len(self.feature) or int(self.feature[at]) != feature:
            return None
        kind = KINDS[int(self.kind[at])]
        return self.vocabulary.name(kind, int(self.key[at])), float(self.depth[at])


@dataclass(frozen=True, slots=True)
class Windows:
    """Equal stretches of wall time, one after the other; some may be left out."""

    from_ns: int
    width_ns: int
    used: Bool

    def __len__(self) -> int:
        return len(self.used)


def count_part(part: Columns, chosen: Filter, windows: Windows, wanted: U64) -> Block | None:
    """Count one segment's samples; None if none fall into a window."""
    window = (part.time_ns - windows.from_ns) // windows.width_ns
    inside = (window >= 0) & (window < len(windows))
    if not inside.all():
        inside[inside] = windows.used[window[inside]]
    elif not windows.used.all():
        inside = windows.used[window]
    passing = chosen.samples(part)
    if passing is not None:
        inside &= passing
    if not inside.any():
        return None
    row, cpu = part.profile, part.cpu
    if not inside.all():
        window, row, cpu = window[inside], row[inside], cpu[inside]
    first = int(window.min())
    width = int(window.max()) - first + 1
    window = window - first
    rows = len(part.profile_stack)
    by_row = np.bincount(window * rows + row, minlength=width * rows).reshape(width, rows)
    folder = _Folder(part, by_row, wanted)
    folder.fold_comms()
    folder.fold_functions()
    folder.fold_cores(window, row, cpu)
    return folder.block(first)


class _Folder:
    """Folds counts by row of `profile` into counts by feature."""

    def __init__(self, part: Columns, by_row: I64, wanted: U64) -> None:
        self.part = part
        self.by_row = by_row
        self.row_total = by_row.sum(axis=0)
        self.samples = by_row.sum(axis=1)
        self.least = max(1.0, FOLDED * float(self.row_total.sum()))
        self.wanted = wanted
        self.comm_ids = _hashed(part.comms)
        self.functions: list[str] = []
        self._found: list[tuple[U64, I64, int, I64, F32]] = []
        self._folded: list[U64] = []
        self._counts: list[I64] = []

    def _add(self, kind: Kind, ids: U64, totals: I64, keys: I64, depth: F32 | None = None) -> Bool:
        """Take note of features; returns which of them are to be folded."""
        if depth is None:
            depth = np.zeros(len(ids), np.float32)
        self._found.append((ids, totals, KINDS.index(kind), keys, depth))
        fold: Bool = totals >= self.least
        if len(self.wanted):
            at = np.minimum(np.searchsorted(self.wanted, ids), len(self.wanted) - 1)
            fold |= self.wanted[at] == ids
        return fold

    def _fold(self, ids: U64, keys: I64, member_row: I64, member_key: I64) -> None:
        """Count features by window; members say which row belongs to which key."""
        if not len(keys):
            return
        at = _positions(keys, member_key)
        member = np.flatnonzero(at >= 0)
        at, row = at[member], member_row[member]
        order = _sorting(at, len(keys))
        starts = np.searchsorted(at[order], np.arange(len(keys)))
        row = row[order]
        self._folded.append(ids)
        # Window by window: a quarter of the time of all at once, and of its memory.
        counts = [np.add.reduceat(by_row.take(row), starts) for by_row in self.by_row]
        self._counts.append(np.stack(counts, axis=1))

    def fold_comms(self) -> None:
        part = self.part
        totals = np.bincount(part.profile_comm, self.row_total, len(part.comms)).astype(np.int64)
        keys = np.flatnonzero(totals)
        ids = _id("comm", self.comm_ids[keys])
        fold = self._add("comm", ids, totals[keys], keys)
        rows = np.flatnonzero(self.row_total)
        self._fold(ids[fold], keys[fold], rows, part.profile_comm[rows])

    def fold_functions(self) -> None:
        part = self.part
        self.functions, function, in_kernel = _functions(part)
        function_ids, many = _hashed(self.functions), len(self.functions)
        tree = Tree(part.depth, function[part.frame])
        rows = np.flatnonzero(self.row_total)
        row, key, depth = _members(tree, rows, part.profile_stack[rows])
        weight = self.row_total[row]
        pair = part.profile_comm[row] * many + key
        keys, totals, depths = _sum_by_key(pair, weight, depth, len(part.comms) * many)
        ids = _id("function", self.comm_ids[keys // many], function_ids[keys % many])
        fold = self._add("function", ids, totals, keys, depths)
        self._fold(ids[fold], keys[fold], row, pair)
        kernel = in_kernel[key]
        row, key, depth, weight = row[kernel], key[kernel], depth[kernel], weight[kernel]
        keys, totals, depths = _sum_by_key(key, weight, depth, many)
        ids = _id("kernel", function_ids[keys])
        fold = self._add("kernel", ids, totals, keys, depths)
        self._fold(ids[fold], keys[fold], row, key)

    def fold_cores(self, window: I64, row: I64, cpu: I64) -> None:
        """Features that are no property of a row: counted from the samples themselves."""
        comms = len(self.part.comms)
        lowest = int(cpu.min()) * comms
        key = cpu * comms - lowest + self.part.profile_comm[row]
        size, width = int(key.max()) + 1, len(self.samples)
        table = np.bincount(window * size + key, minlength=width * size).reshape(width, size)
        totals = table.sum(axis=0)
        found = np.flatnonzero(totals)
        keys = found + lowest
        ids = _id("core", (keys // comms).astype(np.uint64), self.comm_ids[keys % comms])
        fold = self._add("core", ids, totals[found], keys)
        self._folded.append(ids[fold])
        self._counts.append(table[:, found[fold]].T)

    def block(self, first: int) -> Block:
        ids, totals, _, keys, depths = (list(each) for each in zip(*self._found, strict=True))
        kinds = [np.full(len(each[0]), each[2], np.int8) for each in self._found]
        feature = np.concatenate(ids)
        order = np.argsort(feature)
        return Block(
            feature[order],
            np.concatenate(totals)[order],
            np.concatenate(kinds)[order],
            np.concatenate(keys)[order],
            np.concatenate(depths)[order],
            np.concatenate(self._folded),
            first,
            np.concatenate(self._counts),
            self.samples,
            Vocabulary(self.part.comms, self.functions),
        )


def _hashed(texts: Sequence[str]) -> U64:
    """Python's own hash: 64 bits, and remembered by each string."""
    return np.fromiter((hash(text) for text in texts), np.int64, len(texts)).view(np.uint64)


def _id(kind: Kind, *parts: U64) -> U64:
    result = np.full(len(parts[0]), KINDS.index(kind) + 1, np.uint64)
    for part in parts:
        result = mix(result, part)
    return result


def _functions(part: Columns) -> tuple[list[str], I64, Bool]:
    """Names of functions, which of them each frame is, and whether it is the kernel's."""
    number_of: dict[tuple[bool, str], int] = {}
    modules = part.modules
    function = np.fromiter(
        (
            number_of.setdefault(
                (kernel, f"[{modules[module].rpartition('/')[2]}]" if name[:3] == "+0x" else name),
                len(number_of),
            )
            for kernel, module, name in zip(
                part.frame_kernel.tolist(),
                part.frame_module.tolist(),
                part.frame_names,
                strict=True,
            )
        ),
        np.int64,
        len(part.frame_names),
    )
    kernel = np.array([each[0] for each in number_of], bool)
    return [name for _, name in number_of], function, kernel


def _members(tree: Tree, rows: I64, leaf: I64) -> tuple[I64, I64, I64]:
    """(row, function, depth) of each function of each row, once per row."""
    outermost = _outermost(tree)
    found_row: list[I64] = []
    found_node: list[I64] = []
    node, row = leaf, rows
    while len(node):
        counted = outermost[node]
        found_row.append(row[counted])
        found_node.append(node[counted])
        node = tree.parent[node]
        going = node >= 0
        if not going.all():
            node, row = node[going], row[going]
    if not found_row:
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    node = np.concatenate(found_node)
    return np.concatenate(found_row), tree.frame[node], tree.depth[node]


def _outermost(tree: Tree) -> Bool:
    """Rows of the tree whose function is not also among their callers."""
    if not len(tree):
        return np.empty(0, bool)
    order = _sorting(tree.frame, int(tree.frame.max()) + 1)  # and then in depth-first order
    base = tree.frame[order] * (len(tree) + 1)
    # How far the subtrees of the same function reach that began before this row.
    reach = np.maximum.accumulate(base + tree.end[order])
    nested = np.zeros(len(tree), bool)
    nested[order[1:]] = reach[:-1] > (base + order)[1:]
    return ~nested


def _sorting(numbers: I64, size: int) -> I64:
    """The stable order of numbers below `size`; numpy sorts 16 bits much faster than 64."""
    return np.argsort(numbers.astype(np.uint16) if size <= 1 << 16 else numbers, kind="stable")


def _positions(keys: I64, values: I64) -> I64:
    """Where each value stands in `keys`, which are in order; -1 where it does not."""
    size = int(keys[-1]) + 1
    if size > _DENSE:
        at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[at] == values, at, -1)
    place = np.full(max(size, int(values.max(initial=0)) + 1), -1, np.int64)
    place[keys] = np.arange(len(keys))
    return place[values]


def _sum_by_key(key: I64, weight: I64, depth: I64, size: int) -> tuple[I64, I64, F32]:
    """Distinct keys in order, the sum of their weights, and their mean depth."""
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


def sum_totals(blocks: Iterable[Block], features: U64) -> I64:
    """Samples of each of `features`, which are in order and all there are."""
    totals = np.zeros(len(features), np.int64)
    for block in blocks:
        totals[np.searchsorted(features, block.feature)] += block.total
    return totals


def gather(blocks: Iterable[Block], features: U64, windows: int) -> npt.NDArray[np.float64]:
    """Counts of `features`, which are in order, by window.

    Where a part kept only the sum of a feature, it is spread over its windows.
    """
    counts = np.zeros((len(features), windows))
    for block in blocks:
        span = slice(block.first, block.first + len(block.samples))
        rest = np.zeros(len(features))
        place, known = _find(features, block.feature)
        rest[place] = block.total[known]
        place, known = _find(features, block.folded)
        rest[place] = 0
        counts[place, span] += block.counts[known]
        share = block.samples / max(1, int(block.samples.sum()))
        some = np.flatnonzero(rest)
        counts[some, span] += rest[some][:, np.newaxis] * share[np.newaxis, :]
    return counts


def _find(ordered: U64, values: U64) -> tuple[I64, Bool]:
    """Places in `ordered` of those values that are there, and which those are."""
    if not len(ordered):
        return np.empty(0, np.int64), np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    known = ordered[at] == values
    return at[known], known
