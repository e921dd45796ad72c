from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.numbering import (
    Numbers,
    Sequences,
    count_distinct,
    distinct,
    gather,
    group,
    is_among,
)

Keys = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1)), max_size=300)


@given(st.lists(Keys, max_size=6))
def test_every_key_has_one_number_whatever_shares_its_place(batches: list[list[int]]) -> None:
    numbers = Numbers()
    expected: dict[int, int] = {}
    for batch in batches:
        keys = np.array(batch, np.uint64)

        def make(
            rows: npt.NDArray[np.intp], keys: npt.NDArray[np.uint64] = keys
        ) -> npt.NDArray[np.int64]:
            new = keys[rows].tolist()
            assert new == sorted(set(new))
            assert not set(new) & set(expected)
            for key in new:
                expected[key] = len(expected)
            return np.array([expected[key] for key in new], np.int64)

        assert numbers.find(keys, make).tolist() == [expected[key] for key in batch]
    assert len(numbers) == len(expected)


def test_the_table_grows_with_what_is_known() -> None:
    numbers = Numbers()
    keys = np.arange(50_000, dtype=np.uint64) << np.uint64(20)
    numbers.find(keys, lambda rows: rows.astype(np.int64))
    asked: list[int] = []

    def count(rows: npt.NDArray[np.intp]) -> npt.NDArray[np.int64]:
        asked.extend(rows.tolist())
        return rows.astype(np.int64)

    assert (numbers.find(keys, count) == np.arange(50_000)).all()
    assert not asked
    numbers.clear()
    assert len(numbers) == 0


@given(Keys)
def test_what_is_grouped_is_what_numpy_finds(values: list[int]) -> None:
    keys = np.array(values, np.uint64)
    unique, first, inverse = group(keys)
    expected = np.unique(keys, return_index=True, return_inverse=True)
    assert all(map(np.array_equal, (unique, first, inverse), expected))
    assert np.array_equal(distinct(keys), unique)
    counted = np.unique(keys, return_counts=True)
    assert all(map(np.array_equal, count_distinct(keys), counted))


@given(Keys, Keys)
def test_a_value_is_among_those_that_have_it(values: list[int], some: list[int]) -> None:
    found = is_among(np.array(values, np.uint64), distinct(np.array(some, np.uint64)))
    assert found.tolist() == [value in some for value in values]


def test_sequences_are_given_back_as_they_were_added() -> None:
    sequences = Sequences([(1, 2), (), (3,)])
    sequences.extend(np.array([7, 8, 9, 10]), np.array([3, 0, 1]))
    sequences.append(tuple(range(5000)))
    assert [sequences[number] for number in range(len(sequences))] == [
        (), (1, 2), (), (3,), (7, 8, 9), (), (10,), tuple(range(5000)),
    ]  # fmt: skip
    assert sequences.lengths().tolist() == [0, 2, 0, 1, 3, 0, 1, 5000]
    assert sequences.lengths(4).tolist() == [3, 0, 1, 5000]
    assert sequences.values(4)[:4].tolist() == [7, 8, 9, 10]
    bounds = sequences.bounds(np.array([4, 0, 1]))
    assert gather(sequences.values(), *bounds).tolist() == [7, 8, 9, 1, 2]
    with pytest.raises(IndexError):
        sequences[8]


@pytest.mark.parametrize("longest", [3, 200, 150_000])  # of which the last is more than one block
def test_what_is_gathered_is_each_run_after_the_other(longest: int) -> None:
    chance = np.random.default_rng(longest)
    values = chance.integers(0, 1 << 60, 400_000).astype(np.uint64)
    lengths = chance.integers(0, longest, 2000 if longest < 1000 else 7)
    starts = chance.integers(0, len(values) - longest, len(lengths))
    runs = [values[a : a + n] for a, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
    assert np.array_equal(gather(values, starts, lengths), np.concatenate(runs))
