"""Samples by function: from the roll-ups of segments, or from their stacks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nodescope.analysis.filter import Filter
from nodescope.analysis.id_sums import IdSums
from nodescope.archive.feature_counts import count_by_frame
from nodescope.arrays import I64
from nodescope.recording.sample_columns import SampleColumns


class RankedFunctions:
    """Samples by name and module: with the function on their stack, and in itself."""

    def __init__(self) -> None:
        self.by_name: dict[tuple[str, str], tuple[int, int]] = {}
        self.whole = 0

    @classmethod
    def of(cls, parts: Iterable[SampleColumns], chosen: Filter) -> RankedFunctions:
        """Count the functions of a window."""
        functions, rolled = cls(), _RolledFunctions()
        for part in parts:
            if part.whole and chosen == Filter() and "functions" in part.segment.description.tables:
                rolled.take(part)
            else:
                functions._count(part, chosen)
        rolled.name(functions)
        return functions

    def _count(self, part: SampleColumns, chosen: Filter) -> None:
        counts = chosen.counts(part)
        self.whole += int(counts.sum())
        rows = np.flatnonzero(counts)
        leaf, count = part.profile_stack[rows], counts[rows]
        total, own = count_by_frame(part.depth, part.frame, leaf, count, len(part.frame_names))
        frame = np.flatnonzero(total)
        self.add(part, frame, total[frame], own[frame])

    def add(self, part: SampleColumns, frame: I64, total: I64, own: I64) -> None:
        """Add functions by row of the part's `frames`."""
        names, modules = part.frame_names, part.modules
        module_of = part.frame_module[frame].tolist()
        for at, module, more, in_itself in zip(
            frame.tolist(), module_of, total.tolist(), own.tolist(), strict=True
        ):
            key = (names[at], modules[module])
            known = self.by_name.get(key, (0, 0))
            self.by_name[key] = (known[0] + more, known[1] + in_itself)


class _RolledFunctions:
    """Sums roll-ups by id; each function is named once, from the first part that has it."""

    def __init__(self) -> None:
        self._parts: list[SampleColumns] = []
        self._sums = IdSums(2)
        self._whole = 0

    def take(self, part: SampleColumns) -> None:
        """Add a segment."""
        found = part.read_functions()
        self._parts.append(part)
        self._whole += int(found.own.sum())
        self._sums.add(found.id, found.samples, found.own)

    def name(self, functions: RankedFunctions) -> None:
        """Add the sums to what was counted by name."""
        if not self._parts:
            return
        ids, (total, own) = self._sums.in_order()
        unnamed = np.ones(len(ids), bool)
        for part in self._parts:
            found = part.read_functions()  # again: a few parts name all, and a week has thousands
            at = np.searchsorted(ids, found.id)
            fresh = np.flatnonzero(unnamed[at])
            if len(fresh):
                at = at[fresh]
                functions.add(part, found.frame[fresh], total[at], own[at])
                unnamed[at] = False
            if not unnamed.any():
                break
        functions.whole += self._whole
