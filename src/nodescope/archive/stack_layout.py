"""Stacks as a tree: from the order they were met in to depth-first order.

An open segment appends a row `(parent, frame)` whenever it meets a new stack,
so a parent's row always stands above its children's. Sealed, the same tree is
laid out depth-first with children ordered by frame: a depth is then enough to
find the caller, and a subtree is a run of rows.

Everything here works level by level on whole arrays, because a 96-core
segment has a million rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodescope.arrays import I16, I32, I64, Bool
from nodescope.numbering import distinct

MAX_DEPTH = 1 << 15  # frames; `stacks.depth` has 16 bits


@dataclass(frozen=True, slots=True)
class DepthFirst:
    """The tree laid out: `row_of[call]` is the new row, -1 where it was dropped."""

    depth: I16
    frame: I32
    row_of: I32


def find_intact(parent: I32, frame: I32, frames: int) -> Bool:
    """Which calls have a frame and callers that all exist, up to the outermost."""
    rows = np.arange(len(parent), dtype=np.int32)
    intact = (frame >= 0) & (frame < frames) & (parent >= -1) & (parent < rows)
    _climb(np.where(intact, parent, np.int32(-1)), broken := ~intact, None)
    return np.asarray(~broken)


def _climb(ancestor: I32, broken: Bool, depth: I32 | None) -> None:
    """Pointer doubling: after n rounds each row has heard from 2^n callers."""
    while (above := np.flatnonzero(ancestor >= 0)).size:
        upper = ancestor[above]
        broken[above] |= broken[upper]
        if depth is not None:
            depth[above] += depth[upper]
        ancestor = ancestor.copy()
        ancestor[above] = ancestor[upper]


def mark_callers(parent: I32, wanted: Bool) -> Bool:
    """The wanted stacks and all their callers."""
    in_use = wanted.copy()
    above = parent[wanted]
    while above.size:
        above = distinct(above[above >= 0])
        above = above[~in_use[above]]
        in_use[above] = True
        above = parent[above]
    return in_use


def lay_out(parent: I32, frame: I32, in_use: Bool, row_of_frame: I32) -> DepthFirst:
    """Lay out the stacks in use, frames renumbered; equal stacks become one row.

    With a stack all its callers must be in use. A stack deeper than can be told (an
    import may have one; the kernel gives 127 frames) counts as its caller that can.
    """
    calls = np.flatnonzero(in_use)
    index_of = np.full(len(parent) + 1, -1, np.int32)  # the last is for "no parent"
    index_of[calls] = np.arange(len(calls), dtype=np.int32)
    callers = index_of[parent[calls]]
    levels = _split_levels(callers)
    levels, too_deep = levels[:MAX_DEPTH], levels[MAX_DEPTH:]
    nodes, node_of = _merge(levels, callers, row_of_frame[frame[calls]])
    positions = _place(nodes)
    total = sum(map(len, positions))
    laid = DepthFirst(
        np.empty(total, np.int16), np.empty(total, np.int32), np.full(len(parent), -1, np.int32)
    )
    for depth, (rows, node, position) in enumerate(zip(levels, nodes, positions, strict=True)):
        laid.depth[position], laid.frame[position] = depth, node.frame
        laid.row_of[calls[rows]] = position[node_of[rows]]
    for rows in too_deep:
        laid.row_of[calls[rows]] = laid.row_of[parent[calls[rows]]]
    return laid


def _merge(levels: list[I64], parent: I32, frame: I32) -> tuple[list[_Level], I64]:
    """The distinct nodes of each depth, and which node a row became."""
    nodes: list[_Level] = []
    node_of = np.full(len(parent) + 1, 0, np.int64)
    for rows in levels:
        nodes.append(_Level.of(node_of[parent[rows]], frame[rows]))
        node_of[rows] = nodes[-1].node_of_row
    return nodes, node_of


def _split_levels(parent: I32) -> list[I64]:
    """Rows by number of callers, outermost first."""
    depth = (parent >= 0).astype(np.int32)
    _climb(parent, np.zeros(len(parent), np.bool_), depth)
    order = np.argsort(depth, kind="stable")
    return np.split(order, np.cumsum(np.bincount(depth))[:-1]) if len(parent) else []


@dataclass(frozen=True, slots=True)
class _Level:
    """Nodes of one depth, ordered by parent node, then by frame."""

    parent: I64
    frame: I32
    node_of_row: I64

    @classmethod
    def of(cls, parent_node: I64, frame: I32) -> _Level:
        unique, node_of_row = np.unique(parent_node << 32 | frame, return_inverse=True)
        return cls(unique >> 32, (unique & 0xFFFFFFFF).astype(np.int32), node_of_row)


def _place(levels: list[_Level]) -> list[I64]:
    """The depth-first row of each node, per level."""
    sizes = [np.ones(len(level.frame), np.int64) for level in levels]
    for lower in range(len(levels) - 1, 0, -1):
        below = np.bincount(levels[lower].parent, sizes[lower], len(sizes[lower - 1]))
        sizes[lower - 1] += below.astype(np.int64)
    positions: list[I64] = []
    for index, level in enumerate(levels):
        before = np.cumsum(sizes[index]) - sizes[index]  # rows of nodes further left
        if index:
            # Counted from the first sibling, one row below the parent.
            first = np.searchsorted(level.parent, level.parent)
            before += positions[-1][level.parent] + 1 - before[first]
        positions.append(before)
    return positions
