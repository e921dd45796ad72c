"""Row numbers for the dictionaries of an open segment: frames, calls, profile.

The recorder numbers functions and paths for itself; here they become rows of the
segment being written, each written once. All of it is forgotten with the segment,
because a sealed segment is whole in itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
_NO_CALLER = -1
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
        self._frame_rows: dict[int, int] = {}
        self._call_rows: dict[int, int] = {}  # caller's row and frame's row → row
        self._user_rows: dict[int, int] = {}  # user path → row of calls
        self._leaf_rows: dict[int, int] = {}  # user path and kernel path → row of calls
        self._profile_rows: dict[int, int] = {}  # leaf, comm and mode → row
        self._new_frames: list[int] = []
        self._new_calls: list[tuple[int, int]] = []
        self._new_profile: list[tuple[int, int, bool]] = []

    def intern(self, comm: I64, kernel_mode: I64, user: I64, kernel: I64) -> I64:
        """The row of `profile` for each sample: its comm, mode, user path and kernel path."""
        leaves, leaf_of = np.unique((user << 32) | kernel, return_inverse=True)
        known = self._leaf_rows.get
        leaf_rows = np.array(
            [row if (row := known(leaf)) is not None else self._add_leaf(leaf)
             for leaf in leaves.tolist()],
            np.int64,
        )  # fmt: skip
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

    def _add_leaf(self, leaf: int) -> int:
        user, kernel = leaf >> 32, leaf & 0xFFFFFFFF
        row = self._user_rows.get(user)
        if row is None:
            row = self._user_rows[user] = self._descend(_NO_CALLER, self._paths[user])
        row = self._descend(row, self._paths[kernel])
        if row == _NO_CALLER:
            row = self._descend(row, (_UNKNOWN_FRAME,))
        self._leaf_rows[leaf] = row
        return row

    def _descend(self, row: int, path: tuple[int, ...]) -> int:
        """The row of a path below a row, made where it is not there yet."""
        frame_rows, call_rows = self._frame_rows, self._call_rows
        for frame in path:
            frame_row = frame_rows.get(frame)
            if frame_row is None:
                frame_row = frame_rows[frame] = len(frame_rows)
                self._new_frames.append(frame)
            key = ((row + 1) << 32) | frame_row
            callee = call_rows.get(key)
            if callee is None:
                callee = call_rows[key] = len(call_rows)
                self._new_calls.append((row, frame_row))
            row = callee
        return row

    def _add_profile(self, key: int) -> int:
        row = self._profile_rows[key] = len(self._profile_rows)
        self._new_profile.append((key >> 32, (key & 0xFFFFFFFF) >> 1, bool(key & 1)))
        return row
