"""Sums by id, against a dict."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nodescope.analysis.id_sums import IdSums

IDS = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))


@given(st.lists(st.lists(st.tuples(IDS, st.integers(0, 9), st.integers(-9, 9)), max_size=20)))
def test_sums_are_those_of_a_dict(parts: list[list[tuple[int, int, int]]]) -> None:
    sums, first, second = IdSums(2), Counter[int](), Counter[int]()
    for part in parts:
        ids, one, other = (list(column) for column in zip(*part, strict=True)) if part else [[]] * 3
        sums.add(np.array(ids, np.uint64), np.array(one, np.int64), np.array(other, np.int64))
        for key, one_more, other_more in part:
            first[key] += one_more
            second[key] += other_more
    ids_in_order, (total, own) = sums.in_order()
    assert ids_in_order.tolist() == sorted(first)
    assert total.tolist() == [first[key] for key in sorted(first)]
    assert own.tolist() == [second[key] for key in sorted(first)]


def test_more_ids_than_there_is_room_for_at_first() -> None:
    sums, ids = IdSums(1), np.arange(1, 5001, dtype=np.uint64)
    for part in np.array_split(ids[::-1], 7):
        sums.add(part, part.astype(np.int64))
        sums.add(part, part.astype(np.int64))
    found, (total,) = sums.in_order()
    assert (found == ids).all()
    assert (total == 2 * ids.astype(np.int64)).all()
