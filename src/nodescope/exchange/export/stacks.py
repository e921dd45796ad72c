"""The samples that every exporter needs: the chosen ones of a segment, stacks by number.

Functions and paths of functions are numbered over all segments, each once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nodescope.arrays import I64, Bool
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns


@dataclass(frozen=True)
class ChosenSamples:
    """One segment's samples in a window; `chosen` None are all of them."""

    columns: SampleColumns
    chosen: Bool | None = None

    def _take(self, values: I64) -> I64:
        return values if self.chosen is None else values[self.chosen]

    @cached_property
    def row(self) -> I64:
        """Row of `profile` of each sample."""
        return self._take(self.columns.profile)

    @cached_property
    def time_ns(self) -> I64:
        """Wall time of each sample."""
        return self._take(self.columns.time_ns)

    @cached_property
    def cpu(self) -> I64:
        """Core of each sample."""
        return self._take(self.columns.cpu)

    @cached_property
    def pid(self) -> I64:
        """Process of each sample."""
        return self._take(self.columns.pid)

    @cached_property
    def tid(self) -> I64:
        """Thread of each sample."""
        return self.pid + self._take(self.columns.thread)

    @property
    def period_ns(self) -> int:
        """How much time a sample stands for; 0 if the recording does not tell."""
        cost = self.columns.segment.description.cost
        frequency = None if cost is None else cost.frequency_hz
        return SECOND_NS // frequency if frequency and frequency > 0 else 0

    def comm(self, row: int) -> str:
        """The name of the thread, by row of `profile`."""
        return self.columns.comms[int(self.columns.profile_comm[row])]


Parts = Iterable[ChosenSamples]
Frame = tuple[str, str, bool]  # module, name, kernel


class ExportedStacks:
    """Numbers of functions and of paths (outermost first), the same for all segments."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.paths: list[tuple[int, ...]] = []
        self._frame_numbers: dict[Frame, int] = {}
        self._path_numbers: dict[tuple[int, ...], int] = {}

    def number_rows(self, columns: SampleColumns, rows: I64) -> I64:
        """The path's number of each row of `profile` among `rows`; -1 for the others."""
        number_of = np.full(len(columns.profile_stack), -1, np.int64)
        if not len(rows):
            return number_of
        stacks = columns.profile_stack[rows]
        wanted = np.zeros(len(columns.depth), bool)
        wanted[stacks] = True
        frames = self._number_frames(columns)
        paths = np.full(len(columns.depth), -1, np.int64)
        path: list[int] = []
        numbers = self._path_numbers
        listed = zip(columns.depth.tolist(), columns.frame.tolist(), wanted.tolist(), strict=True)
        for at, (depth, frame, is_wanted) in enumerate(listed):
            del path[depth:]
            path.append(frames[frame])
            if is_wanted:
                key = tuple(path)
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = len(self.paths)
                    self.paths.append(key)
                paths[at] = number
        number_of[rows] = paths[stacks]
        return number_of

    def _number_frames(self, columns: SampleColumns) -> list[int]:
        found = []
        numbers = self._frame_numbers
        for module, name, kernel in zip(
            columns.frame_module.tolist(),
            columns.frame_names,
            columns.frame_kernel.tolist(),
            strict=True,
        ):
            frame = (columns.modules[module], name, kernel)
            number = numbers.get(frame)
            if number is None:
                number = numbers[frame] = len(self.frames)
                self.frames.append(frame)
            found.append(number)
        return found


def label(frame: Frame) -> str:
    """A function as one text; one without a name is its binary and the offset."""
    module, name, _ = frame
    return f"{module.rpartition('/')[2]}{name}" if name.startswith("+0x") else name


def count(*keys: I64) -> tuple[list[I64], I64]:
    """Distinct combinations of several columns, and how often each occurs."""
    if not len(keys[0]):
        return [np.empty(0, np.int64) for _ in keys], np.empty(0, np.int64)
    order = np.lexsort(keys[::-1])
    ordered = [key[order] for key in keys]
    changed = np.zeros(len(order), bool)
    changed[0] = True
    for key in ordered:
        changed[1:] |= key[1:] != key[:-1]
    first = np.flatnonzero(changed)
    return [key[first] for key in ordered], np.diff(np.append(first, len(order)))
