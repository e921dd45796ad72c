"""Row numbers for the dictionaries of an open segment: frames, calls, profile.

The recorder numbers functions and paths for itself; here they become rows of the
segment being written, each written once. All of it is forgotten with the segment,
because a sealed segment is whole in itself.

A row of `calls` is a function below its callers. It is known by a 64-bit hash of
all of them, so that the rows of many stacks are found at once, as columns, and
not step by step. Of ten million rows two share a hash by chance once in four
hundred thousand segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.numbering import Numbers, Rows, group

_NO_CALLER = -1
_STEP, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_29, _32 = np.uint64(29), np.uint64(32)
_UNKNOWN_FRAME = 0  # by agreement the first frame: what a sample without any frame shows


class Interner:
    """Turns samples' (comm, mode, path) into rows of `profile`, remembering new rows."""

    def __init__(
        self,
        frames: Sequence[tuple[str, str, bool]],
        paths: Sequence[tuple[int, ...]],
        comms: Sequence[str],
    ) -> None:
        """`frames`, `paths` (outermost first) and `comms` may grow while this is used."""
        self._frames = frames
        self._paths = paths
        self._comms = comms
        self._frame_rows: I64 = np.full(64, -1, np.int64)
        self._frame_count = 0
        self._call_rows = Numbers()  # hash of a function and its callers → row
        self._leaf_rows = Numbers()  # user path and kernel path → row of calls
        self._profile_rows = Numbers()  # leaf, comm and mode → row
        self._new_frames: list[int] = []
        self._new_calls: list[tuple[I64, I64]] = []  # caller and function
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

    def take_new_rows(self) -> dict[str, dict[str, Any]]:
        """The rows that came since the last call, by table, dictionaries before referrers."""
        new: dict[str, dict[str, Any]] = {}
        if self._new_frames:
            frames = [self._frames[number] for number in self._new_frames]
            module, name, kernel = zip(*frames, strict=True)
            new["frames"] = {"module": module, "name": name, "kernel": kernel}
        if self._new_calls:
            parent, frame = map(np.concatenate, zip(*self._new_calls, strict=True))
            new["calls"] = {"parent": parent, "frame": frame}
        if self._new_profile:
            leaf, comm, mode = map(np.concatenate, zip(*self._new_profile, strict=True))
            numbers, _, place = group(comm)
            new["profile"] = {
                "stack": leaf,
                "comm": (place, [self._comms[number] for number in numbers.tolist()]),
                "kernel": mode != 0,
                "samples": np.zeros(len(leaf), np.int64),
            }
        self._new_frames, self._new_calls, self._new_profile = [], [], []
        return new

    def _add_leaves(self, user: I64, kernel: I64) -> I64:
        """The rows of stacks that are met for the first time, made where they are not there yet."""
        paths = self._paths
        stacks = [
            paths[outer] + paths[inner] or (_UNKNOWN_FRAME,)
            for outer, inner in zip(user.tolist(), kernel.tolist(), strict=True)
        ]
        lengths = np.array([len(stack) for stack in stacks], np.int64)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        frames = np.fromiter(chain.from_iterable(stacks), np.int64, int(ends[-1]))
        made: list[I64] = []

        def make(rows: Rows) -> I64:
            made.append(np.sort(rows))  # a caller is met before what it calls
            return len(self._call_rows) + np.argsort(np.argsort(rows))

        row_at = self._call_rows.find(_hash_callers(frames, starts, lengths), make)
        caller = np.concatenate(([_NO_CALLER], row_at[:-1]))
        caller[starts] = _NO_CALLER
        for new in made:
            self._new_calls.append((caller[new], self._number_frames(frames[new])))
        return row_at[ends - 1]

    def _number_frames(self, frames: I64) -> I64:
        """The rows of functions, new ones in the order in which they are met."""
        highest = int(frames.max(initial=0))
        if highest >= len(self._frame_rows):
            more = np.full(2 * highest + 1 - len(self._frame_rows), -1, np.int64)
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


def _hash_callers(frames: I64, starts: I64, lengths: I64) -> U64:
    """For each function of each stack, outermost first, a hash of it and all its callers."""
    place = (np.arange(len(frames)) - np.repeat(starts, lengths)).astype(np.uint64)
    mixed = ((frames.astype(np.uint64) << _32) | place) * _STEP
    mixed ^= mixed >> _29
    mixed *= _MIX
    mixed ^= mixed >> _32
    running = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=running[1:])  # wraps, and so do the differences
    hashed: U64 = running[1:] - np.repeat(running[starts], lengths)
    return hashed
