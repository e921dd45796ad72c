from __future__ import annotations

import numpy as np

from nodescope.archive.function_paths import find_callers
from nodescope.archive.stack_layout import MAX_DEPTH, lay_out


def chain(depth: int) -> tuple[np.ndarray, np.ndarray]:
    parent = np.arange(-1, depth - 1, dtype=np.int32)
    return parent, np.zeros(depth, np.int32)


def test_a_stack_of_a_million_frames_counts_as_its_deepest_caller_that_can_be_told() -> None:
    parent, frame = chain(1_000_000)
    laid = lay_out(parent, frame, np.ones(len(parent), np.bool_), np.zeros(1, np.int32))
    assert len(laid.depth) == MAX_DEPTH
    assert laid.depth[-1] == MAX_DEPTH - 1
    assert laid.row_of[-1] == MAX_DEPTH - 1
    assert laid.row_of[MAX_DEPTH - 2] == MAX_DEPTH - 2
    assert (find_callers(laid.depth) == np.arange(-1, MAX_DEPTH - 1)).all()


def test_a_stack_as_deep_as_can_be_is_whole() -> None:
    parent, frame = chain(MAX_DEPTH)
    laid = lay_out(parent, frame, np.ones(len(parent), np.bool_), np.zeros(1, np.int32))
    assert (laid.row_of == np.arange(MAX_DEPTH)).all()
