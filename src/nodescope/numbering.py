"""Numbers by 64-bit keys, asked for by the ten thousand; what is distinct among many; and
sequences of numbers in one array.

A hash table as two arrays: asking Python's dict is a step of Python per key, and
takes ten times the memory. Keys are hashes or packed numbers; a place is found
by multiplying with a number that nobody outside this process knows, so that a
hostile file cannot choose keys that share their places. Where a place is taken the
next is 1 further, then 2, 3, …: that visits all of them, and no long runs form.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nodescope.arrays import I32, I64, U64

Rows = npt.NDArray[np.intp]

_SPREAD = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)
_FREE = np.uint64(0)
_FOR_ZERO = np.uint64(0x9E3779B97F4A7C15)  # stands for key 0
_FIRST_BITS = 10
_MANY = 100_000
_GATHERED = 1 << 16  # values at a time

Integer = TypeVar("Integer", bound="np.integer[Any]")


def distinct(values: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """The values, each once and in order.

    Plain `np.unique` would import `numpy.ma` to ask whether the array is masked: 25 ms and
    4 MB of a recorder.
    """
    if not len(values):
        return values
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def count_distinct(values: npt.NDArray[Integer]) -> tuple[npt.NDArray[Integer], Rows]:
    """Return the distinct values in order, and how often each occurs."""
    ordered = np.sort(values)
    begins = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    return ordered[starts], np.diff(starts, append=len(ordered))


def group(values: npt.NDArray[Integer]) -> tuple[npt.NDArray[Integer], Rows, Rows]:
    """The distinct values in order, the first row of each, and of each row which it has.

    What `np.unique` answers too, in twice the time for a thousand values.
    """
    order = values.argsort(kind="stable")
    ordered = values[order]
    begins = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    inverse = np.empty(len(ordered), np.intp)
    inverse[order] = begins.cumsum() - 1
    return ordered[begins], order[begins], inverse


def is_among(values: npt.NDArray[Integer], some: npt.NDArray[Integer]) -> npt.NDArray[np.bool_]:
    """Which values are among `some`, which are distinct and in order."""
    if not len(some):
        return np.zeros(len(values), np.bool_)
    place = some.searchsorted(values)
    place[place == len(some)] = 0
    return np.asarray(some[place] == values)


class Numbers:
    """Remembers a number, from 0 to 2^31 - 1, for each key."""

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Forget everything."""
        self._count = 0
        self._make_table(_FIRST_BITS)

    def find(self, keys: U64, make: Callable[[Rows], I64]) -> I64:
        """The number of each key.

        `make` is given, for each key that is not known, the first row that has it, in
        the order of the keys, and answers with their numbers.
        """
        numbers = self.get(keys)
        missing = np.flatnonzero(numbers < 0)
        if len(missing):
            unique, first, inverse = group(keys[missing])
            made = make(missing[first])
            self.put(unique, made)
            numbers[missing] = made[inverse]
        return numbers

    def get(self, keys: U64) -> I64:
        """The number of each key; -1 where it is not known."""
        keys = _without_zero(keys)
        place = self._place(keys)
        numbers = self._numbers.take(place).astype(np.int64)
        missed = np.flatnonzero(self._keys.take(place) != keys)
        if not len(missed):
            return numbers
        numbers[missed] = -1
        searching = missed[self._keys[place[missed]] != _FREE]
        step = 0
        while len(searching):
            step += 1
            at = place[searching] = (place[searching] + step) & self._mask
            there = self._keys[at]
            found = there == keys[searching]
            numbers[searching[found]] = self._numbers[at[found]]
            searching = searching[~found & (there != _FREE)]
        return numbers

    def _place(self, keys: U64) -> Rows:
        place = keys * _SPREAD
        place >>= self._shift
        return place.view(np.intp)

    def _make_table(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._mask = (1 << bits) - 1
        self._keys = np.zeros(1 << bits, np.uint64)
        self._numbers = np.zeros(1 << bits, np.int32)

    def put(self, keys: U64, numbers: I64) -> None:
        """Remember keys that are not known, each once."""
        self._count += len(keys)
        if self._count * 5 > len(self._keys) * 3:
            old_keys, old_numbers = self._keys, self._numbers
            room = 3 if self._count < _MANY else 2  # large ones are slow for their size
            self._make_table((self._count * room).bit_length())
            used = np.flatnonzero(old_keys != _FREE)
            self._place_all(old_keys[used], old_numbers[used])
        self._place_all(_without_zero(keys), numbers.astype(np.int32))

    def _place_all(self, keys: U64, numbers: npt.NDArray[np.int32]) -> None:
        place = self._place(keys)
        waiting = np.arange(len(keys))
        step = 0
        while len(waiting):
            step += 1
            at = place[waiting]
            free = self._keys[at] == _FREE
            self._keys[at[free]] = keys[waiting[free]]  # of several, the last one has it
            placed = self._keys[at] == keys[waiting]
            self._numbers[at[placed]] = numbers[waiting[placed]]
            waiting = waiting[~placed]
            place[waiting] = (place[waiting] + step) & self._mask


def _without_zero(keys: U64) -> U64:
    """Return the keys with another one for 0, which marks free places."""
    return keys if keys.all() else np.where(keys == _FREE, _FOR_ZERO, keys)


class Sequences:
    """Sequences of numbers, one after the other in one array; they only become more.

    As tuples, four hundred thousand stacks of functions would take ten times the memory,
    and a step of Python each. Sequence 0 is the empty one.
    """

    def __init__(self, some: Iterable[Sequence[int]] = ()) -> None:
        """Start with the empty sequence and `some` after it."""
        self._values: I32 = np.empty(1 << 10, np.int32)
        self._ends: I64 = np.zeros(1 << 8, np.int64)
        self._count, self._used = 1, 0
        for one in some:
            self.append(one)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, number: int) -> tuple[int, ...]:
        """Return one sequence."""
        if not 0 <= number < self._count:
            raise IndexError(number)
        start = int(self._ends[number - 1]) if number else 0
        return tuple(self._values[start : self._ends[number]].tolist())

    def append(self, one: Sequence[int]) -> None:
        """Add one sequence."""
        self.extend(np.array(one, np.int32), np.array([len(one)], np.int64))

    def extend(self, values: npt.NDArray[np.integer[Any]], lengths: I64) -> None:
        """Add sequences of these lengths, given one after the other."""
        used, count = self._used + len(values), self._count + len(lengths)
        self._values = _with_room(self._values, used)
        self._ends = _with_room(self._ends, count)
        self._values[self._used : used] = values
        self._ends[self._count : count] = self._used + np.cumsum(lengths)
        self._used, self._count = used, count

    def lengths(self, first: int = 0) -> I64:
        """Return how long each sequence is, from number `first` on."""
        ends = self._ends[max(first - 1, 0) : self._count]
        return np.diff(ends, prepend=0) if not first else np.diff(ends)

    def values(self, first: int = 0) -> I32:
        """Return the numbers of all sequences from number `first` on."""
        start = int(self._ends[first - 1]) if first else 0
        return self._values[start : self._used]

    def bounds(self, numbers: I64) -> tuple[I64, I64]:
        """Return where each of some sequences starts in `values()`, and its length."""
        starts = np.where(numbers > 0, self._ends[numbers - 1], 0)
        return starts, self._ends[numbers] - starts


def gather(values: npt.NDArray[Integer], starts: I64, lengths: I64) -> npt.NDArray[Integer]:
    """Return `values[start : start + length]` of each pair, one after the other.

    Block by block: places then stay in the processor's cache, and need no memory of their own.
    """
    if not lengths.all():
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    ends = np.cumsum(lengths)
    found = np.empty(int(ends[-1]) if len(ends) else 0, values.dtype)
    first = begin = 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, begin + _GATHERED, "right")), first + 1)
        end = int(ends[last - 1])
        start, length = starts[first:last], lengths[first:last]
        # Steps of one, and a jump where the next run starts: faster than repeated starts.
        place = np.ones(end - begin, np.intp)
        place[0] = start[0]
        place[ends[first : last - 1] - begin] = start[1:] - start[:-1] - length[:-1] + 1
        np.cumsum(place, out=place)
        values.take(place, out=found[begin:end], mode="clip")  # without a copy of what is found
        first, begin = last, end
    return found


Array = TypeVar("Array", I32, I64)


def _with_room(array: Array, size: int) -> Array:
    """Return the array, or a larger copy if it has no room for `size` values."""
    if size <= len(array):
        return array
    larger = np.empty(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger
