"""Sums of numbers by 64-bit id, added segment by segment.

Segments of a node mostly have the same paths and functions, so nearly all ids of a segment are
known already: looking them up in a hash table takes a third of the time that sorting all of
them, again and again, takes.
"""

from __future__ import annotations

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.numbering import Numbers, Rows


class IdSums:
    """Sums of several columns of numbers by id."""

    def __init__(self, columns: int) -> None:
        self._number_of = Numbers()
        self._count = 0
        self._ids = np.zeros(1024, np.uint64)
        self._sums = np.zeros((columns, 1024), np.int64)

    def add(self, ids: U64, *columns: I64) -> None:
        """Add numbers, a column each, to the sums of their ids."""

        def make(first: Rows) -> I64:
            numbers = np.arange(self._count, self._count + len(first))
            self._make_room(len(first))
            self._ids[numbers] = ids[first]
            return numbers

        at = self._number_of.find(ids, make)
        for number, values in enumerate(columns):
            np.add.at(self._sums[number], at, values)

    def in_order(self) -> tuple[U64, I64]:
        """Return the ids in order, and their sums: a row for each column."""
        order = np.argsort(self._ids[: self._count])
        return self._ids[order], self._sums[:, order]

    def _make_room(self, more: int) -> None:
        self._count += more
        if self._count > len(self._ids):
            missing = 2 * self._count - len(self._ids)
            self._ids = np.append(self._ids, np.zeros(missing, np.uint64))
            room = np.zeros((len(self._sums), missing), np.int64)
            self._sums = np.concatenate((self._sums, room), axis=1)
