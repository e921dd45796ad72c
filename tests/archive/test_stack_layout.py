from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive.function_paths import find_callers
from nodescope.archive.stack_layout import (
    MAX_DEPTH,
    DepthFirst,
    StackList,
    lay_out,
    read_calls,
    read_stacks,
)

Stack = tuple[int, ...]
# Numbers of frames that fit into 16 bits, into 21, and into neither.
STACKS = st.sampled_from((3, 70_000, 3_000_000)).flatmap(
    lambda highest: st.lists(
        st.lists(st.integers(0, highest), min_size=1, max_size=13).map(tuple), min_size=1
    )
)


def listed(stacks: list[Stack]) -> StackList:
    frames = np.array([frame for stack in stacks for frame in stack], np.int32)
    return StackList(frames, np.array([len(stack) for stack in stacks], np.int64))


def walk(laid: DepthFirst) -> list[Stack]:
    """The stack of each row, the plain way."""
    found: list[Stack] = []
    path: list[int] = []
    for depth, frame in zip(laid.depth.tolist(), laid.frame.tolist(), strict=True):
        del path[depth:]
        path.append(frame)
        found.append(tuple(path))
    return found


@given(STACKS)
def test_the_rows_are_all_stacks_and_their_callers_in_order(stacks: list[Stack]) -> None:
    laid = lay_out(listed(stacks))
    rows = walk(laid)
    assert rows == sorted({stack[:size] for stack in stacks for size in range(1, len(stack) + 1)})
    assert [rows[row] for row in laid.row_of.tolist()] == stacks


@given(STACKS)
def test_stacks_are_read_back_from_their_rows(stacks: list[Stack]) -> None:
    laid, given_stacks = lay_out(listed(stacks)), listed(stacks)
    again = read_stacks(laid.depth, laid.frame, laid.row_of.astype(np.int64))
    assert again.lengths.tolist() == given_stacks.lengths.tolist()
    assert again.frames.tolist() == given_stacks.frames.tolist()


@given(STACKS)
def test_stacks_are_read_from_calls(stacks: list[Stack]) -> None:
    rows = walk(lay_out(listed(stacks)))
    number = {stack: row for row, stack in enumerate(rows)}
    parent = np.array([number.get(stack[:-1], -1) for stack in rows], np.int32)
    frame = np.array([stack[-1] for stack in rows], np.int32)
    leaves = np.array([number[stack] for stack in stacks], np.int64)
    found = read_calls(parent, frame, leaves)
    assert found.frames.tolist() == listed(stacks).frames.tolist()


def test_a_stack_whose_callers_are_not_all_there_is_empty() -> None:
    parent, frame = np.array([-1, 0, 7, 2], np.int32), np.arange(4, dtype=np.int32)
    found = read_calls(parent, frame, np.array([1, 3]))
    assert found.lengths.tolist() == [2, 0]
    assert found.frames.tolist() == [0, 1]


def test_a_stack_of_a_million_frames_counts_as_its_deepest_caller_that_can_be_told() -> None:
    laid = lay_out(listed([(0,) * 1_000_000, (0,) * (MAX_DEPTH - 1)]))
    assert len(laid.depth) == MAX_DEPTH
    assert laid.depth[-1] == MAX_DEPTH - 1
    assert laid.row_of.tolist() == [MAX_DEPTH - 1, MAX_DEPTH - 2]
    assert (find_callers(laid.depth) == np.arange(-1, MAX_DEPTH - 1)).all()
