"""The walks over a tree, against the slow truth."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.test_call_tree import callers, trees

from nodescope.analysis.call_tree import CallTree
from nodescope.analysis.flame import _levels
from nodescope.analysis.flame_rows import FlameRows, merge, widest
from nodescope.archive.caller_paths import Level, to_depth_first, walk_up
from nodescope.archive.feature_counts import count_by_frame
from nodescope.archive.function_paths import FunctionPaths, Runs, cut_tree, find_paths
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


def paths_laid_out(paths: FunctionPaths) -> Counter[tuple[int, ...]]:
    """The same of paths in depth-first order."""
    found: Counter[tuple[int, ...]] = Counter()
    path: list[int] = []
    for group, depth, frame, total in zip(
        paths.group.tolist(), paths.depth.tolist(), paths.frame.tolist(), paths.total.tolist(),
        strict=True,
    ):  # fmt: skip
        del path[depth:]
        path.append(frame)
        found[(group, *path)] += total
    return found


def _walk_up(tree: CallTree, leaf: I64, number: I64, count: I64, fewest: int) -> list[Level]:
    runs = Runs(tree.depth.astype(np.int16))
    return walk_up(runs, tree.frame, leaf, number, count, fewest)


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
        laid = to_depth_first(_walk_up(tree, leaf, number, count, 1))
        assert paths_laid_out(laid) == slow
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
    found, itself = count_by_frame(depth, tree.frame, leaf, own[leaf], 6)
    assert itself.sum() == own.sum()
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


@given(trees(), st.data(), st.integers(1, 6))
def test_a_trunk_has_what_is_wide_and_leads_every_leaf_to_it(
    tree: CallTree, data: st.DataObject, fewest: int
) -> None:
    leaves = st.tuples(st.integers(0, max(len(tree) - 1, 0)), st.integers(1, 5))
    chosen = data.draw(st.lists(leaves, max_size=30)) if len(tree) else []
    row, count = (np.array([each[i] for each in chosen], np.int64) for i in range(2))
    depth, frame = tree.depth.astype(np.int16), tree.frame.astype(np.int32)
    trunk = cut_tree(depth, frame, row, count, fewest)
    totals: Counter[int] = Counter()
    for leaf, samples in chosen:
        totals.update(dict.fromkeys(callers(tree, leaf), samples))
    wide = sorted(each for each, total in totals.items() if total >= fewest)
    assert trunk.depth.tolist() == depth[wide].tolist()
    assert trunk.frame.tolist() == frame[wide].tolist()
    for (leaf, _), at in zip(chosen, trunk.row_of.tolist(), strict=True):
        mine = [each for each in callers(tree, leaf) if totals[each] >= fewest]
        assert at == (wide.index(mine[0]) if mine else -1)
