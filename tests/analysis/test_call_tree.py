from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodescope.analysis.call_tree import CallTree
from nodescope.archive.stack_ids import identify_frames


@st.composite
def trees(draw: st.DrawFn) -> CallTree:
    """Any tree in depth-first order."""
    depth: list[int] = []
    for step in draw(st.lists(st.integers(0, 8), max_size=60)):
        deepest = depth[-1] + 1 if depth else 0
        depth.append(min(step, deepest))
    frame = draw(st.lists(st.integers(0, 5), min_size=len(depth), max_size=len(depth)))
    return CallTree(np.array(depth, np.int64), np.array(frame, np.int64))


def callers(tree: CallTree, row: int) -> list[int]:
    """The rows from this one outwards, the slow way."""
    path, wanted = [], int(tree.depth[row])
    for at in range(row, -1, -1):
        if tree.depth[at] == wanted:
            path.append(at)
            wanted -= 1
    return path


@given(trees())
def test_parents_and_ends_are_those_of_the_slow_way(tree: CallTree) -> None:
    tree.check_invariants()
    for row in range(len(tree)):
        path = callers(tree, row)
        assert tree.parent[row] == (path[1] if len(path) > 1 else -1)
        inside = [at for at in range(len(tree)) if row in callers(tree, at)]
        assert tree.end[row] == max(inside) + 1


@given(trees(), st.integers(0, 2**32))
def test_totals_sum_over_subtrees(tree: CallTree, seed: int) -> None:
    own = np.random.default_rng(seed).integers(0, 5, len(tree))
    totals = tree.totals(own)
    for row in range(len(tree)):
        assert totals[row] == own[row : tree.end[row]].sum()


@given(trees(), st.integers(0, 5))
def test_below_marks_whoever_was_called_by_a_marked_one(tree: CallTree, wanted: int) -> None:
    below = tree.below(tree.frame == wanted)
    for row in range(len(tree)):
        assert below[row] == any(tree.frame[at] == wanted for at in callers(tree, row))


@given(trees())
def test_an_id_is_the_path_and_nothing_else(tree: CallTree) -> None:
    names = [f"f{number}" for number in range(6)]
    frames = identify_frames(["m"], np.zeros(6, np.int64), names, np.zeros(6, bool))
    ids = tree.identify(frames)
    paths = [tuple(int(tree.frame[at]) for at in callers(tree, row)) for row in range(len(tree))]
    assert (
        len(set(zip(ids.tolist(), paths, strict=True))) == len(set(paths)) == len(set(ids.tolist()))
    )


def test_ids_of_functions_depend_on_module_name_and_mode() -> None:
    ids = identify_frames(
        ["a", "b"], np.array([0, 1, 0, 0]), ["f", "f", "g", "f"], np.array([0, 0, 0, 1], bool)
    )
    assert len(set(ids.tolist())) == 4
