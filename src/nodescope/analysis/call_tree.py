"""The call tree of a segment: its stacks as rows in depth-first order, known by their depth.

Everything is vectorised over the rows of one depth, so that a tree of 200,000
rows costs milliseconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from nodescope.archive.function_paths import find_callers
from nodescope.arrays import I64, U64, Bool, Integers

_STEP, _FINISH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_29 = np.uint64(29)


def mix(parent: U64, own: U64) -> U64:
    """The id of a path from that of its callers and that of its leaf: order matters."""
    mixed = (parent ^ (parent >> _29)) * _STEP + own
    mixed ^= mixed >> _29
    result: U64 = mixed * _FINISH
    return result


@lru_cache(maxsize=1 << 18)  # twelve hours of a node repeat the same names 360 times
def _hash(text: str) -> int:
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest)


def identify_frames(
    modules: Sequence[str], module_of: I64, names: Sequence[str], kernel: Bool
) -> U64:
    """A 64-bit id of each function, the same in every segment and on every node."""
    hashed = np.array([_hash(text) for text in (*modules, *names)], np.uint64)
    module_ids, name_ids = hashed[: len(modules)], hashed[len(modules) :]
    return mix(module_ids[module_of], name_ids + kernel.astype(np.uint64))


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
        ids = np.empty(len(self), np.uint64)
        own = frame_ids[self.frame]
        for rows in self.levels:
            outer = self.parent[rows]
            above = np.where(outer >= 0, ids[outer], np.uint64(0))
            ids[rows] = mix(above, own[rows])
        return ids

    def check_invariants(self) -> None:
        """What must hold of any tree; tests call it."""
        assert (self.depth >= 0).all()
        if len(self):
            assert self.depth[0] == 0
            assert (np.diff(self.depth) <= 1).all()
            assert (self.parent < np.arange(len(self))).all()
            inner = self.parent >= 0
            assert (self.end[inner] <= self.end[self.parent[inner]]).all()
