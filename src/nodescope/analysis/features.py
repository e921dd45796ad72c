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
from nodescope.archive.function_paths import Leaves, Pieces
from nodescope.archive.stack_ids import mix
from nodescope.arrays import F32, I16, I64, U64, Bool
from nodescope.recording.sample_columns import SampleColumns

Kind = Literal["comm", "function", "kernel", "core"]
KINDS: tuple[Kind, ...] = ("comm", "function", "kernel", "core")
FOLDED = 0.002  # of a segment's samples
_DENSE = 20_000_000  # cells of a table of (comm, function); beyond that they are sorted


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


def count_part(part: SampleColumns, chosen: Filter, windows: Windows, wanted: U64) -> Block | None:
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

    def __init__(self, part: SampleColumns, by_row: I64, wanted: U64) -> None:
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

    def _fold(self, ids: U64, keys: I64, by_member: I64, member: I64, member_key: I64) -> None:
        """Count features by window; members say which column belongs to which key."""
        if not len(keys):
            return
        at = _positions(keys, member_key)
        chosen = np.flatnonzero(at >= 0)
        at, member = at[chosen], member[chosen]
        order = _sorting(at, len(keys))
        starts = np.searchsorted(at[order], np.arange(len(keys)))
        member = member[order]
        self._folded.append(ids)
        # Window by window: a quarter of the time of all at once, and of its memory.
        counts = [np.add.reduceat(one.take(member), starts) for one in by_member]
        self._counts.append(np.stack(counts, axis=1))

    def fold_comms(self) -> None:
        part = self.part
        totals = np.bincount(part.profile_comm, self.row_total, len(part.comms)).astype(np.int64)
        keys = np.flatnonzero(totals)
        ids = _id("comm", self.comm_ids[keys])
        fold = self._add("comm", ids, totals[keys], keys)
        rows = np.flatnonzero(self.row_total)
        self._fold(ids[fold], keys[fold], self.by_row, rows, part.profile_comm[rows])

    def fold_functions(self) -> None:
        part = self.part
        self.functions, function, in_kernel = _functions(part)
        function_ids, many = _hashed(self.functions), len(self.functions)
        rows = np.flatnonzero(self.row_total)
        leaves = Leaves.of(part.depth, part.profile_stack[rows], part.profile_comm[rows])
        pieces = leaves.pieces().in_order()
        piece, key, depth = pieces.outermost(leaves, function[part.frame], many)
        by_piece = _count_pieces(pieces, self.by_row, rows[leaves.order])
        weight = by_piece.sum(axis=0)[piece]
        pair = leaves.group[pieces.leaf][piece] * many + key
        keys, totals, depths = _sum_by_key(pair, weight, depth, len(part.comms) * many)
        ids = _id("function", self.comm_ids[keys // many], function_ids[keys % many])
        fold = self._add("function", ids, totals, keys, depths)
        self._fold(ids[fold], keys[fold], by_piece, piece, pair)
        kernel = np.flatnonzero(in_kernel[key])
        piece, key, depth, weight = piece[kernel], key[kernel], depth[kernel], weight[kernel]
        keys, totals, depths = _sum_by_key(key, weight, depth, many)
        ids = _id("kernel", function_ids[keys])
        fold = self._add("kernel", ids, totals, keys, depths)
        self._fold(ids[fold], keys[fold], by_piece, piece, key)

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
    return np.fromiter(map(hash, texts), np.int64, len(texts)).view(np.uint64)


def _id(kind: Kind, *parts: U64) -> U64:
    result = np.full(len(parts[0]), KINDS.index(kind) + 1, np.uint64)
    for part in parts:
        result = mix(result, part)
    return result


def _functions(part: SampleColumns) -> tuple[list[str], I64, Bool]:
    """Names of functions, which of them each frame is, and whether it is the kernel's."""
    binaries = [f"[{module.rpartition('/')[2]}]" for module in part.modules]
    named = [
        (kernel, binaries[module] if name[:3] == "+0x" else name)
        for kernel, module, name in zip(
            part.frame_kernel.tolist(), part.frame_module.tolist(), part.frame_names, strict=True
        )
    ]
    number_of = {each: number for number, each in enumerate(dict.fromkeys(named))}
    function = np.fromiter(map(number_of.__getitem__, named), np.int64, len(named))
    kernel = np.array([each[0] for each in number_of], bool)
    return [name for _, name in number_of], function, kernel


def _count_pieces(pieces: Pieces, by_row: I64, leaf_row: I64) -> I64:
    """Samples by window and piece, from those by window and row of `profile`."""
    counts = np.empty((len(by_row), len(pieces.leaf)), np.int64)
    running = np.zeros(len(leaf_row) + 1, np.int64)
    for window, rows in enumerate(by_row):
        np.cumsum(rows.take(leaf_row), out=running[1:])
        np.subtract(running.take(pieces.end), running.take(pieces.leaf), out=counts[window])
    return counts


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


def _sum_by_key(key: I64, weight: I64, depth: I16, size: int) -> tuple[I64, I64, F32]:
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
