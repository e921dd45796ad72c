"""Stacks as a tree: from stacks in the order they were met to depth-first order.

An open segment appends each new stack whole, outermost function first. Sealed, the
stacks are one tree, laid out depth-first with children ordered by frame: a depth is
then enough to find the caller, and a subtree is a run of rows.

That is the order of the stacks as words are ordered in a dictionary, each without what
it shares with the one before. Four functions at a time are one 64-bit number, so the
stacks are sorted by their first four functions, those that agree by their next four,
and so on; most differ after a dozen. No node is ever looked up in a table: a 96-core
segment may have ten million.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodescope.archive.function_paths import Runs
from nodescope.arrays import I16, I32, I64, U64, Bool
from nodescope.numbering import gather

MAX_DEPTH = 1 << 15  # frames; `stacks.depth` has 16 bits
_SORTED_AS = ((16, 4), (21, 3), (32, 2))  # bits of a frame's number, frames in 64 bits


@dataclass(frozen=True, slots=True)
class StackList:
    """Stacks one after the other in one array of frames, outermost first."""

    frames: I32
    lengths: I64

    @property
    def starts(self) -> I64:
        """Where each stack starts in `frames`."""
        starts: I64 = np.cumsum(self.lengths) - self.lengths
        return starts


@dataclass(frozen=True, slots=True)
class DepthFirst:
    """The tree laid out: `row_of[stack]` is the row of its leaf."""

    depth: I16
    frame: I32
    row_of: I32


def is_tree(depth: I16) -> Bool:
    """Decide of each row whether it may follow the one above it."""
    fits = np.ones(len(depth), np.bool_)
    fits[:1] = depth[:1] == 0
    np.less_equal(depth[1:], depth[:-1] + np.int16(1), out=fits[1:])
    fits &= depth >= 0
    return fits


def read_stacks(depth: I16, frame: I32, leaves: I64) -> StackList:
    """Return the stacks that end in these rows of a tree that is laid out."""
    runs = Runs(depth)
    lengths = depth[leaves].astype(np.int64) + 1
    run = runs.of(leaves)
    first = runs.first[run]
    if not first.any():  # each is a run of rows by itself, as recorders append them
        return StackList(gather(frame, leaves + 1 - lengths, lengths), lengths)
    found = np.empty(int(lengths.sum()), np.int32)
    starts = np.cumsum(lengths) - lengths
    stack, bottom = np.arange(len(leaves)), depth[leaves].astype(np.int64)
    while len(stack):
        first = runs.first[run].astype(np.int64)
        size = bottom - first + 1
        inside = np.flatnonzero(size > 0)
        begin = runs.start[run[inside]]
        target = (starts[stack] + first)[inside]
        many = size[inside]
        shift = np.repeat(np.cumsum(many) - many, many)
        along = np.arange(int(many.sum())) - shift
        found[np.repeat(target, many) + along] = frame[np.repeat(begin, many) + along]
        going = np.flatnonzero(first > 0)
        stack, bottom = stack[going], np.minimum(bottom, first - 1)[going]
        run = runs.caller[run[going]]
    return StackList(found, lengths)


def read_calls(parent: I32, frame: I32, leaves: I64) -> StackList:
    """Return the stacks that end in these rows of `calls`, as formats 1 and 2 had them.

    A row whose callers are not all there has a stack of length 0.
    """
    rows = np.arange(len(parent))
    broken = (parent < -1) | (parent >= rows)
    levels: list[tuple[I64, I32]] = []
    stack, row = np.arange(len(leaves)), leaves
    lengths = np.zeros(len(leaves), np.int64)
    bad = np.zeros(len(leaves), np.bool_)
    while len(stack):
        bad[stack[broken[row]]] = True
        fine = ~broken[row]
        stack, row = stack[fine], row[fine]
        levels.append((stack, frame[row]))
        lengths[stack] += 1
        row = parent[row].astype(np.int64)
        stack, row = stack[row >= 0], row[row >= 0]
    ends = np.cumsum(lengths)
    frames = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
    for above, (stacks, found) in enumerate(levels):
        frames[ends[stacks] - 1 - above] = found
    kept = np.where(bad, 0, lengths)
    return StackList(gather(frames, ends - lengths, kept), kept)


def lay_out(stacks: StackList) -> DepthFirst:
    """Lay out stacks as a tree, frames in order of their number; equal stacks become one row.

    A stack deeper than can be told (an import may have one; the kernel gives 127 frames)
    counts as its caller that can. No stack may be empty.
    """
    starts, lengths = stacks.starts, np.minimum(stacks.lengths, MAX_DEPTH)
    order, shared = _sort(stacks.frames, starts, lengths)
    starts, lengths = starts[order], lengths[order]
    new = lengths - shared
    rows = np.cumsum(new)
    row_of = np.empty(len(order), np.int32)
    row_of[order] = rows - 1
    frame = gather(stacks.frames, starts + shared, new)
    return DepthFirst(_count_down(rows, new, shared), frame, row_of)


def _count_down(rows: I64, new: I64, shared: I64) -> I16:
    """Return the depth of each row: from `shared` on in each stack that has new ones."""
    some = np.flatnonzero(new)
    depth = np.ones(int(rows[-1]) if len(rows) else 0, np.int16)
    depth[:1] = 0
    above = (shared + new)[some[:-1]] - 1  # the depth of the row before a stack's first
    depth[(rows - new)[some[1:]]] = shared[some[1:]] - above
    np.cumsum(depth, out=depth)
    return depth


def _sort(frames: I32, starts: I64, lengths: I64) -> tuple[I64, I64]:
    """Return the order of the stacks, and how many frames each shares with the one before."""
    highest = int(frames.max(initial=0)) + 1
    bits, many = next(each for each in _SORTED_AS if highest >> each[0] == 0)
    order = np.arange(len(starts))
    shared = np.zeros(len(starts), np.int64)
    going = order.copy()  # places in `order` of stacks that agree with a neighbour so far
    group: I64 = np.zeros(len(order), np.int64)
    agreed = 0
    while len(going):
        stack = order[going]
        word = _read_word(frames, starts[stack] + agreed, lengths[stack] - agreed, bits, many)
        by_word = _sort_groups(group, word)
        stack, word = stack[by_word], word[by_word]
        order[going] = stack
        differs = word[1:] ^ word[:-1]
        same_group = group[1:] == group[:-1]
        common = np.full(len(differs), many, np.int64)
        for place in range(many):
            common -= ((differs >> np.uint64(bits * place)) != 0).astype(np.int64)
        inner = np.flatnonzero(same_group) + 1
        # Two that end here are equal up to their end, which is not a frame.
        length = np.minimum(lengths[stack[inner]], lengths[stack[inner - 1]])
        shared[going[inner]] = np.minimum(agreed + common[inner - 1], length)
        agrees = same_group & (differs == 0) & (word[1:] & np.uint64((1 << bits) - 1) != 0)
        agreed += many
        kept = np.zeros(len(going), np.bool_)
        kept[1:] |= agrees
        kept[:-1] |= agrees
        begins = np.ones(len(going), np.bool_)
        begins[1:] = ~agrees
        group = np.cumsum(begins, dtype=np.int64)[kept]
        going = going[kept]
    return order, shared


def _read_word(frames: I32, start: I64, left: I64, bits: int, many: int) -> U64:
    """Return the next frames of stacks as one number each; 0 stands behind the end."""
    word = np.zeros(len(start), np.uint64)
    last = len(frames) - 1
    for place in range(many):
        own = frames[np.minimum(start + place, last)] + np.int32(1)
        own[left <= place] = 0
        word |= own.astype(np.uint64) << np.uint64(bits * (many - 1 - place))
    return word


def _sort_groups(group: I64, word: U64) -> I64:
    """Return the order by group, which are in order, and by word inside each."""
    if not len(group) or group[0] == group[-1]:
        return np.argsort(word, kind="stable")
    return np.lexsort((word, group))
