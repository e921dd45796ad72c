"""The call tree of a segment: its stacks as rows in depth-first order, known by their depth.

Everything is vectorised over the rows of one depth, so that a tree of 200,000
rows costs milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nodescope.archive.function_paths import find_callers
from nodescope.archive.stack_ids import identify_rows
from nodescope.arrays import I64, U64, Bool, Integers


@dataclass(frozen=True)
class CallTree:
    """Depths in depth-first order, and the function of each row."""

    depth: Integers
    frame: Integers

    def __len__(self) -> int:
        return len(self.depth)

    @cached_property
    def levels(self) -> list[I64]:
        """The rows of each depth, in order."""
        # In 8 or 16 bits: numpy then sorts by radix, many times as fast.
        narrow = np.uint8 if self.depth.max(initial=0) < 256 else np.uint16
        order = np.argsort(self.depth.astype(narrow), kind="stable")
        sizes = np.bincount(self.depth)
        deepest = len(sizes) - 1
        bounds = np.append(0, np.cumsum(sizes))
        return [order[bounds[d] : bounds[d + 1]] for d in range(deepest + 1)]

    @cached_property
    def parent(self) -> I64:
        """The caller's row, -1 for the outermost."""
        return find_callers(self.depth)

    @cached_property
    def end(self) -> I64:
        """The row after the last of each subtree."""
        end = np.full(len(self), len(self), np.int64)
        for rows in self.levels:
            following = np.append(rows[1:], len(self))
            outer = self.parent[rows]
            limit = np.where(outer >= 0, end[outer], len(self))
            end[rows] = np.minimum(following, limit)
        return end

    def totals(self, own: I64) -> I64:
        """Sums over subtrees of what each row itself has."""
        running = np.zeros(len(self) + 1, np.int64)
        np.cumsum(own, out=running[1:])
        return running[self.end] - running[:-1]

    def below(self, marked: Bool) -> Bool:
        """The rows that are marked or have a marked row among their callers."""
        change = np.zeros(len(self) + 1, np.int64)
        rows = np.flatnonzero(marked)
        np.add.at(change, rows, 1)
        np.add.at(change, self.end[rows], -1)
        return np.cumsum(change[:-1]) > 0

    def identify(self, frame_ids: U64) -> U64:
        """The id of each row's whole path."""
        return identify_rows(self.depth, self.parent, frame_ids[self.frame])

    def check_invariants(self) -> None:
        """Check what holds of any tree; tests call it."""
        assert (self.depth >= 0).all()
        if len(self):
            assert self.depth[0] == 0
            assert (np.diff(self.depth) <= 1).all()
            assert (self.parent < np.arange(len(self))).all()
            inner = self.parent >= 0
            assert (self.end[inner] <= self.end[self.parent[inner]]).all()
