"""Row numbers for the dictionaries of an open segment: frames, calls, profile.

The recorder numbers functions and paths for itself; here they become rows of the
segment being written, each written once. All of it is forgotten with the segment,
because a sealed segment is whole in itself.

A stack is known by the numbers of its user and its kernel path, and appended whole when
it is first met: that other stacks share its callers is found out when the segment is
sealed, once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nodescope.archive.stack_layout import MAX_DEPTH
from nodescope.arrays import I32, I64
from nodescope.numbering import Numbers, Sequences, gather, group

_UNKNOWN_FRAME = 0  # by agreement the first frame: what a sample without any frame shows


class Interner:
    """Turns samples' (comm, mode, path) into rows of `profile`, remembering new rows."""

    def __init__(
        self,
        frames: Sequence[tuple[str, str, bool]],
        paths: Sequences,
        comms: Sequence[str],
    ) -> None:
        """`frames`, `paths` (outermost first) and `comms` may grow while this is used."""
        self._frames = frames
        self._paths = paths
        self._comms = comms
        self._frame_rows: I32 = np.full(64, -1, np.int32)
        self._frame_count = 0
        self._stack_count = 0  # rows of `stacks`
        self._leaf_rows = Numbers()  # user path and kernel path → row of stacks
        self._profile_rows = Numbers()  # leaf, comm and mode → row
        self._new_frames: list[int] = []
        self._new_stacks: list[tuple[npt.NDArray[np.int16], I32]] = []  # depth and function
        self._new_profile: list[tuple[I64, I64, I64]] = []  # leaf, comm and mode

    def intern(self, comm: I64, kernel_mode: I64, user: I64, kernel: I64) -> I64:
        """The row of `profile` for each sample: its comm, mode, user path and kernel path."""
        leaf = ((user << 32) | kernel).astype(np.uint64)
        leaf_row = self._leaf_rows.find(
            leaf, lambda rows: self._add_leaves(user[rows], kernel[rows])
        )
        key = ((leaf_row << 32) | (comm << 1) | kernel_mode).astype(np.uint64)
        return self._profile_rows.find(
            key,
            lambda rows: self._add_profile(leaf_row[rows], comm[rows], kernel_mode[rows]),
        )

    @property
    def stack_rows(self) -> int:
        """How many rows of `stacks` there are so far."""
        return self._stack_count

    def take_new_rows(self) -> dict[str, dict[str, Any]]:
        """The rows that came since the last call, by table, dictionaries before referrers."""
        new: dict[str, dict[str, Any]] = {}
        if self._new_frames:
            frames = [self._frames[number] for number in self._new_frames]
            module, name, kernel = zip(*frames, strict=True)
            new["frames"] = {"module": module, "name": name, "kernel": kernel}
        if self._new_stacks:
            depth = np.concatenate([each[0] for each in self._new_stacks])
            frame = np.concatenate([each[1] for each in self._new_stacks])
            new["stacks"] = {"depth": depth, "frame": frame}
        if self._new_profile:
            leaf, comm, mode = map(np.concatenate, zip(*self._new_profile, strict=True))
            numbers, _, place = group(comm)
            new["profile"] = {
                "stack": leaf,
                "comm": (place, [self._comms[number] for number in numbers.tolist()]),
                "kernel": mode != 0,
                "samples": np.zeros(len(leaf), np.int64),
            }
        self._new_frames, self._new_stacks, self._new_profile = [], [], []
        return new

    def _add_leaves(self, user: I64, kernel: I64) -> I64:
        """Append stacks that are met for the first time; returns the rows of their leaves."""
        bounds = self._paths.bounds(np.stack((user, kernel), axis=1).ravel())
        frames = gather(self._paths.values(), *bounds)
        lengths = bounds[1].reshape(-1, 2).sum(axis=1)
        empty = np.flatnonzero(lengths == 0)
        if len(empty):
            frames = np.insert(frames, np.cumsum(lengths)[empty], _UNKNOWN_FRAME)
            lengths[empty] = 1
        if lengths.max() > MAX_DEPTH:
            starts = np.cumsum(lengths) - lengths
            lengths = np.minimum(lengths, MAX_DEPTH)
            frames = gather(frames, starts, lengths)
        ends = np.cumsum(lengths)
        depth = (np.arange(len(frames)) - np.repeat(ends - lengths, lengths)).astype(np.int16)
        self._new_stacks.append((depth, self._number_frames(frames)))
        leaves = self._stack_count + ends - 1
        self._stack_count += len(frames)
        return leaves

    def _number_frames(self, frames: I32) -> I32:
        """The rows of functions, new ones in the order in which they are met."""
        highest = int(frames.max(initial=0))
        if highest >= len(self._frame_rows):
            more = np.full(2 * highest + 1 - len(self._frame_rows), -1, np.int32)
            self._frame_rows = np.concatenate((self._frame_rows, more))
        new, first, _ = group(frames[self._frame_rows[frames] < 0])
        new = new[np.argsort(first)]
        self._frame_rows[new] = np.arange(self._frame_count, self._frame_count + len(new))
        self._frame_count += len(new)
        self._new_frames += new.tolist()
        return self._frame_rows[frames]

    def _add_profile(self, leaf: I64, comm: I64, mode: I64) -> I64:
        before = len(self._profile_rows)
        self._new_profile.append((leaf, comm, mode))
        return np.arange(before, before + len(leaf))
