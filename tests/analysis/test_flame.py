"""The walks over a tree, against the slow truth."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.test_call_tree import callers, trees

from nodescope.analysis.call_tree import CallTree
from nodescope.analysis.flame import (
    FlameRows,
    Level,
    _levels,
    _walk_up,
    merge,
    widest,
)
from nodescope.analysis.top import function_totals
from nodescope.archive.function_paths import find_paths
from nodescope.arrays import I64


def paths_of(levels: list[Level]) -> Counter[tuple[int, ...]]:
    """(group, function, function, …) of every path with its samples."""
    found: Counter[tuple[int, ...]] = Counter()
    before: list[tuple[int, ...]] = []
    for level in levels:
        here = []
        for caller, frame, total in zip(
            level.caller.tolist(), level.frame.tolist(), level.total.tolist(), strict=True
        ):
            path = (before[caller] if before else (caller,)) + (frame,)
            here.append(path)
            found[path] += total
        before = here
    return found


def walk_down(tree: CallTree, leaf: I64, number: I64, count: I64, fewest: int) -> list[Level]:
    depth, frame = tree.depth.astype(np.int16), tree.frame.astype(np.int32)
    return _levels(find_paths(depth, frame, leaf, number, count, fewest))


@given(trees(), st.data(), st.integers(1, 6), st.booleans())
def test_walks_are_the_sums_of_the_slow_way(
    tree: CallTree, data: st.DataObject, fewest: int, up: bool
) -> None:
    leaves = st.tuples(st.integers(0, max(len(tree) - 1, 0)), st.integers(0, 3), st.integers(1, 5))
    rows = data.draw(st.lists(leaves, max_size=40)) if len(tree) else []
    slow: Counter[tuple[int, ...]] = Counter()
    for row, group, samples in rows:
        path = [int(tree.frame[at]) for at in callers(tree, row)]
        path = path if up else path[::-1]
        for length in range(1, len(path) + 1):
            slow[(group, *path[:length])] += samples
    leaf, number, count = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    if up:
        # Paths of the same functions may be several rows of the tree.
        assert paths_of(_walk_up(tree, leaf, number, count, 1)) == slow
    kept = {path: total for path, total in slow.items() if total >= fewest}
    if up:
        assert paths_of(_walk_up(tree, leaf, number, count, fewest)) == kept
    elif not _siblings_alike(tree):
        assert paths_of(walk_down(tree, leaf, number, count, fewest)) == kept
    else:  # the archive merges such siblings; here only the sums must be right
        assert paths_of(walk_down(tree, leaf, number, count, 1)) == slow


def _siblings_alike(tree: CallTree) -> bool:
    """Whether a caller calls the same function in two rows."""
    pairs = list(zip(tree.parent.tolist(), tree.frame.tolist(), strict=True))
    return len(set(pairs)) < len(pairs)


@given(trees(), st.integers(0, 2**32))
def test_a_function_counts_once_per_stack(tree: CallTree, seed: int) -> None:
    own = np.random.default_rng(seed).integers(0, 5, len(tree))
    slow: Counter[int] = Counter()
    for row in range(len(tree)):
        for function in {int(tree.frame[at]) for at in callers(tree, row)}:
            slow[function] += int(own[row])
    leaf, depth = np.flatnonzero(own), tree.depth.astype(np.int16)
    found = function_totals(depth, tree.frame, leaf, own[leaf], 6)
    assert {f: total for f, total in enumerate(found.tolist()) if total} == +slow


def test_the_widest_rows_bring_their_callers() -> None:
    path, caller = np.array([5, 3, 9, 4], np.uint64), np.array([0, 5, 3, 5], np.uint64)
    rows = FlameRows(path, caller, path, np.array([7, 7, 7, 2]))
    for count in range(5):
        kept = widest(rows, count)
        assert len(kept.path) == count
        assert set(kept.caller.tolist()) - {0} <= set(kept.path.tolist())


def test_many_parts_sum_as_one() -> None:
    ids = np.array([1, 2], np.uint64)
    one = FlameRows(ids, ids, ids, np.array([5, 7]))
    assert merge([one] * 9).total.tolist() == [45, 63]
    assert merge([]).total.tolist() == []
