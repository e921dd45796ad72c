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

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
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
        self._call_rows: dict[int, int] = {}  # hash of a function and its callers → row
        self._leaf_rows: dict[int, int] = {}  # user path and kernel path → row of calls
        self._profile_rows: dict[int, int] = {}  # leaf, comm and mode → row
        self._new_frames: list[int] = []
        self._new_calls: list[tuple[int, int]] = []
        self._new_profile: list[tuple[int, int, bool]] = []

    def intern(self, comm: I64, kernel_mode: I64, user: I64, kernel: I64) -> I64:
        """The row of `profile` for each sample: its comm, mode, user path and kernel path."""
        leaves, leaf_of = np.unique((user << 32) | kernel, return_inverse=True)
        known = self._leaf_rows.get
        leaf_rows = np.array([known(leaf, -1) for leaf in leaves.tolist()], np.int64)
        new = np.flatnonzero(leaf_rows < 0)
        if len(new):
            leaf_rows[new] = self._add_leaves(leaves[new].tolist())
        keys, key_of = np.unique(
            (leaf_rows[leaf_of] << 32) | (comm << 1) | kernel_mode, return_inverse=True
        )
        known = self._profile_rows.get
        rows = np.array(
            [row if (row := known(key)) is not None else self._add_profile(key)
             for key in keys.tolist()],
            np.int64,
        )  # fmt: skip
        return rows[key_of] if len(rows) else np.empty(0, np.int64)

    def take_new_rows(self) -> dict[str, dict[str, list[object]]]:
        """The rows that came since the last call, by table, dictionaries before referrers."""
        frames = [self._frames[number] for number in self._new_frames]
        new: dict[str, dict[str, list[object]]] = {
            "frames": {
                "module": [frame[0] for frame in frames],
                "name": [frame[1] for frame in frames],
                "kernel": [frame[2] for frame in frames],
            },
            "calls": {
                "parent": [parent for parent, _ in self._new_calls],
                "frame": [frame for _, frame in self._new_calls],
            },
            "profile": {
                "stack": [leaf for leaf, _, _ in self._new_profile],
                "comm": [self._comms[comm] for _, comm, _ in self._new_profile],
                "kernel": [mode for _, _, mode in self._new_profile],
                "samples": [0] * len(self._new_profile),
            },
        }
        self._new_frames = []
        self._new_calls = []
        self._new_profile = []
        return {table: columns for table, columns in new.items() if next(iter(columns.values()))}

    def _add_leaves(self, leaves: list[int]) -> I64:
        """The rows of stacks that are met for the first time, made where they are not there yet."""
        paths = self._paths
        stacks = [
            paths[leaf >> 32] + paths[leaf & 0xFFFFFFFF] or (_UNKNOWN_FRAME,) for leaf in leaves
        ]
        lengths = np.array([len(stack) for stack in stacks], np.int64)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        frames = np.fromiter(chain.from_iterable(stacks), np.int64, int(ends[-1]))
        keys, first, inverse = np.unique(
            _hash_callers(frames, starts, lengths), return_index=True, return_inverse=True
        )
        known = self._call_rows.get
        rows = np.array([known(key, -1) for key in keys.tolist()], np.int64)
        new = np.flatnonzero(rows < 0)
        new = new[np.argsort(first[new])]  # a caller is met before what it calls
        rows[new] = np.arange(len(self._call_rows), len(self._call_rows) + len(new))
        self._call_rows.update(zip(keys[new].tolist(), rows[new].tolist(), strict=True))
        row_at = rows[inverse]
        caller = np.concatenate(([_NO_CALLER], row_at[:-1]))
        caller[starts] = _NO_CALLER
        made = first[new]
        self._new_calls += zip(
            caller[made].tolist(), self._number_frames(frames[made]).tolist(), strict=True
        )
        leaf_rows = row_at[ends - 1]
        self._leaf_rows.update(zip(leaves, leaf_rows.tolist(), strict=True))
        return leaf_rows

    def _number_frames(self, frames: I64) -> I64:
        """The rows of functions, new ones in the order in which they are met."""
        highest = int(frames.max(initial=0))
        if highest >= len(self._frame_rows):
            more = np.full(2 * highest + 1 - len(self._frame_rows), -1, np.int64)
            self._frame_rows = np.concatenate((self._frame_rows, more))
        new, first = np.unique(frames[self._frame_rows[frames] < 0], return_index=True)
        new = new[np.argsort(first)]
        self._frame_rows[new] = np.arange(self._frame_count, self._frame_count + len(new))
        self._frame_count += len(new)
        self._new_frames += new.tolist()
        return self._frame_rows[frames]

    def _add_profile(self, key: int) -> int:
        row = self._profile_rows[key] = len(self._profile_rows)
        self._new_profile.append((key >> 32, (key & 0xFFFFFFFF) >> 1, bool(key & 1)))
        return row


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
