from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodescope.perf.kernel_code import GONE, UNTOLD, ChangedCode

SIZE = 40
PLACE = st.integers(0, SIZE)


def test_what_comes_covers_what_was_there_and_the_rest_of_that_is_gone() -> None:
    code = ChangedCode()
    code.cover(10, 30, 0)
    code.cover(20, 25, 1)
    assert [code.find(at) for at in (9, 10, 19, 20, 24, 25, 29, 30)] == [
        UNTOLD, GONE, GONE, 1, 1, GONE, GONE, UNTOLD,
    ]  # fmt: skip


def test_a_copy_stays_as_it_was() -> None:
    code = ChangedCode()
    code.cover(10, 20, 0)
    before = code.copy()
    code.cover(10, 20, 1)
    assert (before.find(15), code.find(15)) == (0, 1)


def test_what_is_gone_can_be_forgotten() -> None:
    code = ChangedCode()
    code.cover(10, 20, 0)
    code.cover(30, 40, GONE)
    code.forget_gone()
    assert code.find_all(np.array([15, 35], np.uint64)).tolist() == [0, UNTOLD]


@given(st.lists(st.tuples(PLACE, PLACE, st.integers(-1, 5)), max_size=30))
def test_many_changes_against_a_table_of_every_byte(changes: list[tuple[int, int, int]]) -> None:
    code, table, owner = ChangedCode(), [UNTOLD] * (SIZE + 1), [-1] * (SIZE + 1)
    for change, (start, end, number) in enumerate(changes):
        code.cover(start, end, number)
        gone = {owner[at] for at in range(start, end)} - {-1}
        for at in range(SIZE + 1):
            if owner[at] in gone:
                table[at] = GONE
            if start <= at < end:
                table[at], owner[at] = number, change
        if number == GONE:  # where the rest of something is gone, it is all one
            for at in range(SIZE + 1):
                owner[at] = change if owner[at] in gone else owner[at]
    assert [code.find(at) for at in range(SIZE + 1)] == table
    assert code.find_all(np.arange(SIZE + 1, dtype=np.uint64)).tolist() == table
    assert code.starts == sorted(code.starts)
