"""Paths of functions as a compressed trie: stretches of functions with the same samples.

A segment has a tree of stacks and, for each group (a process name, a core), the rows of
that tree which samples ended in: its leaves. Sorted by group and row, how many functions
each leaf shares with the one before says everything about the trie they form: a leaf
brings the functions below what it shares, and a function's samples are those of a run
of leaves, up to the next leaf that shares less. Functions of one path with the same run
are one piece. There are at most twice as many pieces as leaves, however deep stacks are,
and none of it goes level by level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nodescope.arrays import I16, I32, I64, Bool, Integers

_BELOW_ALL = np.int16(np.iinfo(np.int16).min)
_NARROW = 1 << 16


def count_keys(parts: Iterable[I64], size: int) -> I32:
    """Return how often each key below `size` occurs, of keys that come in parts."""
    counts = np.zeros(size, np.int32)
    for keys in parts:
        if len(keys):
            least = int(keys.min())  # samples are in the order of cores: a part has few of them
            found = np.bincount(keys - least)
            counts[least : least + len(found)] += found.astype(np.int32)
    return counts


def next_smaller(values: I16) -> I64:
    """Where the next smaller value stands, for each value; behind the end where none does."""
    bounded = np.append(values, _BELOW_ALL)
    following = np.arange(1, len(values) + 1)
    going = np.flatnonzero(bounded[1:] >= values)
    while len(going):
        # Between a value and `following` none is smaller; the same holds from there on.
        following[going] = following[following[going]]
        going = going[bounded[following[going]] >= values[going]]
    return following


def least_between(values: I16, start: I64, end: I64) -> I16:
    """The least of `values[start:end]`, none of them empty, by runs of 2, 4, 8 … values."""
    found = np.empty(len(start), np.int16)
    size = np.frexp(end - start)[1] - 1  # the largest power of two that fits
    runs = values
    for power in range(int(size.max(initial=-1)) + 1):
        if power:
            half = 1 << (power - 1)
            runs = np.minimum(runs[:-half], runs[half:])
        here = np.flatnonzero(size == power)
        first, last = start.take(here), end.take(here) - (1 << power)
        found[here] = np.minimum(runs.take(first), runs.take(last))
    return found


@dataclass(frozen=True)
class Runs:
    """The runs of rows that call the next one, of a tree in depth-first order."""

    depth: I16  # of each row

    @cached_property
    def starts(self) -> Bool:
        """Whether a run starts, by row."""
        starts = np.empty(len(self.depth), bool)
        starts[:1] = True
        np.not_equal(self.depth[1:], self.depth[:-1] + np.int16(1), out=starts[1:])
        return starts

    @cached_property
    def start(self) -> I64:
        """The first row of each run."""
        return np.flatnonzero(self.starts)

    @cached_property
    def first(self) -> I16:
        """The depth of the first row of each run."""
        return self.depth[self.start]

    @cached_property
    def caller(self) -> I64:
        """The run that the caller of each run's first row is in; -1 if it has none."""
        return len(self.first) - 1 - next_smaller(self.first[::-1])[::-1]

    @cached_property
    def above(self) -> I64:
        """The row of the caller of each run's first row; -1 if it has none."""
        above = self.start[self.caller] + (self.first - np.int16(1) - self.first[self.caller])
        return np.where(self.caller < 0, -1, above)

    @cached_property
    def parent(self) -> I64:
        """The caller's row, -1 for the outermost, by row."""
        parent = np.arange(-1, len(self.depth) - 1)
        parent[self.start] = self.above
        return parent

    def parents_of(self, rows: I64) -> I64:
        """The rows of the callers of some rows, -1 for the outermost."""
        parent = rows - 1
        begins = np.flatnonzero(self.starts[rows])
        parent[begins] = self.above[np.searchsorted(self.start, rows[begins])]
        return parent

    def of(self, rows: I64) -> I64:
        """The run that each row is in."""
        if len(rows) * 16 < len(self.depth):
            return np.searchsorted(self.start, rows, side="right") - 1
        number: I64 = np.cumsum(self.starts, dtype=np.int32).take(rows) - np.int32(1)
        return number


def find_callers(depth: Integers) -> I64:
    """Return the row of each row's caller in a tree laid out depth-first, -1 for the outermost."""
    return Runs(depth.astype(np.int16, copy=False)).parent


@dataclass(frozen=True)
class Leaves:
    """The rows that samples ended in, by group and then in depth-first order."""

    runs: Runs
    order: I64  # of the rows as they were given
    group: I64
    row: I64
    depth: I16
    shared: I16  # how many outer functions it shares with the one before

    @classmethod
    def of(cls, depth: I16, row: I64, group: I64) -> Leaves:
        """Sort the leaves of a tree with these depths."""
        by_row = np.argsort(row, kind="stable")  # rows of `profile` are a few sorted runs
        # Stable in 16 bits is by radix; there are more groups than that only by process.
        narrow = group.astype(np.uint16) if group.max(initial=0) < _NARROW else group
        order = by_row[np.argsort(narrow[by_row], kind="stable")]
        shared = _shared(depth, row, by_row, order, group)
        sorted_row = row[order]
        return cls(Runs(depth), order, group[order], sorted_row, depth[sorted_row], shared)

    def pieces(self) -> Pieces:
        """The trie."""
        following = next_smaller(self.shared)
        limit_at = np.append(self.shared, np.int16(-1))
        leaf = np.flatnonzero(self.shared <= self.depth)
        found = []
        end, bottom, least = leaf + 1, self.depth[leaf], self.shared[leaf]
        while len(leaf):
            # From the innermost function outwards: up to `end` all share these functions.
            limit = limit_at.take(end)
            top = np.maximum(limit, least)
            some = np.flatnonzero(top <= bottom)
            found.append((leaf.take(some), end.take(some), top.take(some), bottom.take(some)))
            going = np.flatnonzero(limit > least)
            bottom = np.minimum(bottom, top - np.int16(1)).take(going)
            leaf, least = leaf.take(going), least.take(going)
            end = following.take(end.take(going))
        if not found:
            nothing, none = np.empty(0, np.int64), np.empty(0, np.int16)
            return Pieces(nothing, nothing, none, none)
        return Pieces(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _shared(depth: I16, row: I64, by_row: I64, order: I64, group: I64) -> I16:
    """How many outer functions each leaf shares with the one before; 0 in another group.

    That is the least depth in (before, this]. Leaves lie close together, those of one
    group far apart: so first from each leaf to the next, then along the leaves between.
    """
    if not len(row):
        return np.empty(0, np.int16)
    sorted_row = row[by_row]
    fresh = np.append(True, sorted_row[1:] != sorted_row[:-1])
    every = sorted_row[fresh]
    at = np.empty(len(row), np.int64)
    at[by_row] = np.cumsum(fresh) - 1
    at, group = at[order], group[order]
    between = np.minimum.reduceat(depth[: every[-1] + 1], every[:-1] + 1)
    shared = np.zeros(len(row), np.int16)
    same = np.flatnonzero(group[1:] == group[:-1]) + 1
    again = same[at[same] == at[same - 1]]  # the same leaf in the other mode: all is shared
    shared[again] = depth[every[at[again]]] + 1
    same = same[at[same] != at[same - 1]]
    shared[same] = least_between(between, at[same - 1], at[same])
    return shared


@dataclass(frozen=True, slots=True)
class Pieces:
    """Functions from depth `top` to `bottom` on the way to a leaf; theirs are [leaf, end)."""

    leaf: I64
    end: I64
    top: I16
    bottom: I16

    def take(self, chosen: I64) -> Pieces:
        """Some of them."""
        return Pieces(
            self.leaf.take(chosen),
            self.end.take(chosen),
            self.top.take(chosen),
            self.bottom.take(chosen),
        )

    def in_order(self) -> Pieces:
        """Depth-first: each before those inside it."""
        # They are a few sorted runs, which a stable sort takes advantage of.
        return self.take(np.argsort((self.leaf << 16) + self.top, kind="stable"))

    def functions(self, leaves: Leaves) -> tuple[I64, I64, I16]:
        """(piece, row of `stacks`, depth) of each function, piece by piece, outermost first."""
        piece, top, bottom, offset = self._located(leaves)
        order = np.argsort((piece << 16) + top, kind="stable")
        piece, top, bottom, offset = piece[order], top[order], bottom[order], offset[order]
        size = bottom - top + np.int64(1)
        begin = np.cumsum(size) - size
        depth = np.arange(int(size.sum())) - np.repeat(begin - top, size)
        return np.repeat(piece, size), depth + np.repeat(offset, size), depth.astype(np.int16)

    def outermost(self, leaves: Leaves, function: Integers, many: int) -> tuple[I64, I64, I16]:
        """(piece, function, depth) of functions, those that are their own callers left out.

        `function` is one of `many`, by row of `stacks`. A function that recurs lies inside
        the leaves of another one of the same number: pieces must be in order, so one that
        began before reaches beyond where it begins.
        """
        piece, row, depth = self.functions(leaves)
        key = function.take(row).astype(np.int64, copy=False)
        order = np.argsort(key.astype(np.uint16) if many <= _NARROW else key, kind="stable")
        piece, key = piece.take(order), key.take(order)
        base = key * (len(leaves.row) + 1)
        reach = np.maximum.accumulate(base + self.end.take(piece))
        base += self.leaf.take(piece)
        first = np.flatnonzero(np.append(True, reach[:-1] <= base[1:])[: len(key)])
        return piece.take(first), key.take(first), depth.take(order.take(first))

    def _located(self, leaves: Leaves) -> tuple[I64, I16, I16, I64]:
        """The parts of pieces that are runs of rows: (piece, top, bottom, row minus depth)."""
        runs = leaves.runs
        piece, bottom = np.arange(len(self.leaf)), self.bottom
        run = runs.of(leaves.row[self.leaf])
        found = []
        while len(piece):
            first, top = runs.first.take(run), self.top.take(piece)
            inside = np.flatnonzero(first <= bottom)
            located = (piece, np.maximum(first, top), bottom, runs.start.take(run) - first)
            found.append(tuple(each.take(inside) for each in located))
            # The rest is in the run of the callers.
            going = np.flatnonzero(first > top)
            bottom = np.minimum(bottom, first - np.int16(1)).take(going)
            piece, run = piece.take(going), runs.caller.take(run.take(going))
        if not found:
            nothing, none = np.empty(0, np.int64), np.empty(0, np.int16)
            return nothing, none, none, nothing
        columns = (np.concatenate(each) for each in zip(*found, strict=True))
        return tuple(columns)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class FunctionPaths:
    """Paths of functions by group, depth-first: the caller is the last row above, one less deep."""

    group: I64
    depth: I16
    frame: I64  # row of `frames`
    total: I64  # samples

    def take(self, rows: I64) -> FunctionPaths:
        """Some of them, with all their callers."""
        return FunctionPaths(
            self.group.take(rows), self.depth.take(rows), self.frame.take(rows),
            self.total.take(rows),
        )  # fmt: skip

    @classmethod
    def nothing(cls) -> FunctionPaths:
        """No path at all."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, np.empty(0, np.int16), nothing, nothing)


def find_paths(
    depth: I16, frame: I32, row: I64, group: I64, count: I64, fewest: int
) -> FunctionPaths:
    """The paths with at least `fewest` samples; `row` are the leaves, `count` their samples."""
    if not len(row):
        return FunctionPaths.nothing()
    leaves = Leaves.of(depth, row, group)
    running = np.zeros(len(row) + 1, np.int64)
    np.cumsum(count[leaves.order], out=running[1:])
    pieces = leaves.pieces()
    total = running.take(pieces.end) - running.take(pieces.leaf)
    pieces = pieces.take(np.flatnonzero(total >= fewest)).in_order()
    total = running.take(pieces.end) - running.take(pieces.leaf)
    piece, rows, depths = pieces.functions(leaves)
    group = leaves.group.take(pieces.leaf)
    return FunctionPaths(
        group.take(piece), depths, frame.take(rows).astype(np.int64), total.take(piece)
    )


@dataclass(frozen=True, slots=True)
class Trunk:
    """A tree without its narrow branches, in depth-first order."""

    depth: I16
    frame: I32
    row_of: I64  # of each leaf of the whole tree, its innermost row here; -1 if none is left


def cut_tree(depth: I16, frame: I32, row: I64, count: I64, fewest: int) -> Trunk:
    """Leave out of a tree what has fewer samples than `fewest`; `row` are the leaves."""
    if not len(row):
        return Trunk(depth[:0], frame[:0], row)
    leaves = Leaves.of(depth, row, np.zeros(len(row), np.int64))
    pieces, wide = _find_wide(leaves, count, fewest)
    kept = np.sort(pieces.take(wide).functions(leaves)[1])
    innermost = _find_innermost(leaves, pieces, wide)
    place = np.where(innermost < 0, -1, np.searchsorted(kept, innermost))
    return Trunk(depth.take(kept), frame.take(kept), place)


def narrow_trunk(trunk: Trunk, count: I64, fewest: int) -> Trunk:
    """Return a trunk without what has less than `fewest` samples; `count` are those of leaves."""
    inside = np.flatnonzero(trunk.row_of >= 0)
    by_row = np.bincount(trunk.row_of[inside], count[inside], len(trunk.depth)).astype(np.int64)
    rows = np.flatnonzero(by_row)  # fewer than the leaves, and in order
    within = cut_tree(trunk.depth, trunk.frame, rows, by_row[rows], fewest)
    wide = np.full(len(trunk.depth) + 1, -1, np.int64)
    wide[rows] = within.row_of
    return Trunk(within.depth, within.frame, wide[trunk.row_of])


def find_wide_callers(depth: I16, row: I64, count: I64, fewest: int) -> I64:
    """Of each leaf the row of its innermost function with `fewest` samples; -1 if none has.

    Whatever is wide in some group lies on the way to those rows.
    """
    if not len(row):
        return row
    leaves = Leaves.of(depth, row, np.zeros(len(row), np.int64))
    return _find_innermost(leaves, *_find_wide(leaves, count, fewest))


def _find_wide(leaves: Leaves, count: I64, fewest: int) -> tuple[Pieces, I64]:
    """All pieces, and which of them have `fewest` samples."""
    running = np.zeros(len(leaves.row) + 1, np.int64)
    np.cumsum(count[leaves.order], out=running[1:])
    pieces = leaves.pieces()
    wide = np.flatnonzero(running.take(pieces.end) - running.take(pieces.leaf) >= fewest)
    return pieces, wide


def _find_innermost(leaves: Leaves, pieces: Pieces, wide: I64) -> I64:
    """Of each leaf the row of its innermost wide function; -1 if there is none."""
    row = leaves.row
    # A leaf that brings no wide function has those it shares with the one before.
    innermost = leaves.shared.astype(np.int64) - 1
    brings = np.zeros(len(row), bool)
    brings[pieces.leaf[wide]] = True
    innermost[brings] = -1
    np.maximum.at(innermost, pieces.leaf[wide], pieces.bottom[wide].astype(np.int64))
    since = np.cumsum(brings) << 16
    innermost = np.minimum.accumulate(innermost - since) + since
    found = np.full(len(row), -1, np.int64)
    some = np.flatnonzero(innermost >= 0)
    at = innermost[some].astype(np.int16)
    found[leaves.order[some]] = Pieces(some, some + 1, at, at).functions(leaves)[1]
    return found
