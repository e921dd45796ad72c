"""Numbers by 64-bit keys, asked for by the ten thousand.

Python's dict knows every key, but asking it is a step of Python per key, and
sorting keys to ask for each only once costs nearly as much. Before it lies a
table in which a key has one place: what is found there is found for all keys
at once. Where two keys share a place the later one has it, and the dict knows
the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from nodescope.sources.perf.decode import I64, U64

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_FIRST_BITS = 12


class Numbers:
    """Remembers a number for each key."""

    def __init__(self) -> None:
        self.clear()

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        """Forget everything."""
        self._known: dict[int, int] = {}
        self._make_table(_FIRST_BITS)

    def find(self, keys: U64, make: Callable[[npt.NDArray[np.intp]], I64]) -> I64:
        """The number of each key.

        `make` is given the rows of keys that are not known, one for each key, in
        the order of the keys, and answers with their numbers.
        """
        place = self._place(keys)
        numbers = np.where(self._keys[place] == keys, self._numbers[place], -1)
        missing = np.flatnonzero(numbers < 0)
        if len(missing):
            unique, first, inverse = np.unique(
                keys[missing], return_index=True, return_inverse=True
            )
            known = self._known.get
            found = np.array([known(key, -1) for key in unique.tolist()], np.int64)
            new = np.flatnonzero(found < 0)
            if len(new):
                found[new] = make(missing[first[new]])
                self._known.update(zip(unique[new].tolist(), found[new].tolist(), strict=True))
            self._remember(unique, found)
            numbers[missing] = found[inverse]
        return numbers

    def _place(self, keys: U64) -> npt.NDArray[np.intp]:
        return ((keys * _SPREAD) >> self._shift).astype(np.intp)

    def _make_table(self, bits: int) -> None:
        self._shift = np.uint64(64 - bits)
        self._keys = np.zeros(1 << bits, np.uint64)
        self._numbers = np.full(1 << bits, -1, np.int64)

    def _remember(self, keys: U64, numbers: I64) -> None:
        if len(self._known) * 2 > len(self._keys):
            self._make_table((len(self._known) * 4).bit_length())
            count = len(self._known)
            keys = np.fromiter(self._known.keys(), np.uint64, count)
            numbers = np.fromiter(self._known.values(), np.int64, count)
        place = self._place(keys)
        self._keys[place] = keys
        self._numbers[place] = numbers
