"""Names of just-in-time compiled code, from `perf-PID.map` files.

A runtime that wants to be profiled (node --perf-basic-prof, Java agents,
Python -X perf, .NET) appends lines `START SIZE name`, in hex, to
`/tmp/perf-<its own pid>.map` (Linux tools/perf/Documentation/jit-interface.txt).
The process may live in a container: the path goes through `/proc/PID/root` and
its innermost NSpid.

The file belongs to whoever runs the process, so: it must be a regular file
owned by that user or root, at most `MAX_FILE_BYTES` are read, `PIECES_PER_UPDATE`
pieces per update, lines that make no sense are skipped and counted. Names are read
from the file again when shown; 16 bytes per entry are kept.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nodescope.sources.symbols.file_bytes import (
    MAX_NAME_BYTES,
    FileBytes,
    printable,
)
from nodescope.sources.symbols.mounts import is_remote
from nodescope.sources.symbols.unresolved import Reason, Unresolvable

MAX_FILE_BYTES = 64 << 20
MAX_ENTRIES = 1_000_000
MAX_NESTING = 4
PIECE_BYTES = 256 << 10
PIECES_PER_UPDATE = 8
_MAX_STATUS_BYTES = 16 << 10

_LINE = re.compile(
    rb"^(?:0x)?([0-9a-fA-F]{1,16}) (?:0x)?([0-9a-fA-F]{1,16}) ([^\n]+)\n", re.MULTILINE
)
_NSPID = re.compile(rb"^NSpid:\s*(?:\d+\s+)*(\d+)\s*$", re.MULTILINE)
_UID = re.compile(rb"^Uid:\s*\d+\s+(\d+)", re.MULTILINE)


class PerfMap:
    """One process's map; `update` follows its growth, `resolve` names addresses."""

    def __init__(self, pid: int, proc_root: Path = Path("/proc")) -> None:
        self._proc = proc_root / str(pid)
        self._file: FileBytes | None = None
        self._read_bytes = 0
        self._starts = np.empty(0, np.uint64)
        self._sizes = np.empty(0, np.uint32)
        self._names = np.empty(0, np.uint32)
        self.failures: Counter[Reason] = Counter()

    @property
    def nbytes(self) -> int:
        """What the arrays cost."""
        return self._starts.nbytes + self._sizes.nbytes + self._names.nbytes

    def __len__(self) -> int:
        return len(self._starts)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def update(self) -> bool:
        """Read what was appended since the last call; whether there was anything.

        A map that shrank or was replaced is read anew. At most
        `PIECES_PER_UPDATE` pieces are taken at once, the rest next time.
        """
        try:
            self._reopen()
            grown = False
            for _ in range(PIECES_PER_UPDATE):
                if not self._read_piece():
                    break
                grown = True
            return grown
        except Unresolvable as error:
            self.failures[error.why] += 1
            return False

    def resolve(self, addresses: NDArray[np.uint64]) -> list[str | None]:
        """The name of the code at each address, None where the map has none."""
        return [self._name(row) if row >= 0 else None for row in self.lookup(addresses).tolist()]

    def lookup(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The entry that covers each address, or -1."""
        found = np.full(len(addresses), -1, np.int64)
        rows = np.searchsorted(self._starts, addresses, side="right").astype(np.int64) - 1
        for _ in range(MAX_NESTING):
            pending = (found < 0) & (rows >= 0)
            if not pending.any():
                break
            at = np.maximum(rows, 0)
            covered = pending & (addresses - self._starts[at] < self._sizes[at])
            found[covered] = rows[covered]
            rows -= 1
        return found

    def _name(self, row: int) -> str | None:
        if self._file is None:
            return None
        try:
            data = self._file.read_up_to(int(self._names[row]), MAX_NAME_BYTES)
        except Unresolvable as error:
            self.failures[error.why] += 1
            return None
        return printable(data.split(b"\n", 1)[0].decode("utf-8", "replace")) or None

    def _reopen(self) -> None:
        """Open the map again: its size is fixed when opened, and it may be another file."""
        uid, nspid = self._read_status()
        path = f"/tmp/perf-{nspid}.map"  # noqa: S108 - the runtimes' choice, hence the checks
        if is_remote(str(self._proc / "mountinfo"), path):
            raise Unresolvable(path, Reason.REMOTE)
        file = FileBytes(f"{self._proc}/root{path}")
        if file.status.st_uid not in (0, uid):
            file.close()
            raise Unresolvable(file.label, Reason.DENIED, "owned by somebody else")
        if file.size > MAX_FILE_BYTES:
            self.failures[Reason.TOO_LARGE] += 1
            file.size = MAX_FILE_BYTES
        old, self._file = self._file, file
        if old is not None:
            same = old.status.st_ino == file.status.st_ino
            old.close()
            if same and file.size >= self._read_bytes:
                return
        self._read_bytes = 0
        self._starts, self._sizes, self._names = self._starts[:0], self._sizes[:0], self._names[:0]

    def _read_status(self) -> tuple[int, int]:
        path = str(self._proc / "status")
        try:
            with open(path, "rb") as status:
                data = status.read(_MAX_STATUS_BYTES)
        except OSError as error:
            raise Unresolvable(path, Reason.PROCESS_GONE) from error
        uid, nspid = _UID.search(data), _NSPID.search(data)
        if uid is None or nspid is None:
            raise Unresolvable(path, Reason.MALFORMED)
        return int(uid[1]), int(nspid[1])

    def _read_piece(self) -> bool:
        assert self._file is not None
        data = self._file.read_up_to(self._read_bytes, PIECE_BYTES)
        cut = data.rfind(b"\n") + 1
        if not cut:
            if len(data) == PIECE_BYTES:
                raise Unresolvable(self._file.label, Reason.MALFORMED, "a line without end")
            return False
        self._add(*parse_perf_map(data[:cut]))
        self._read_bytes += cut
        return True

    def _add(
        self, starts: NDArray[np.uint64], sizes: NDArray[np.uint32], names: NDArray[np.uint32]
    ) -> None:
        """Merge new entries; code compiled later to the same address replaces the old."""
        if len(self._starts) + len(starts) > MAX_ENTRIES:
            self.failures[Reason.TOO_LARGE] += 1
            return
        all_starts = np.concatenate((self._starts, starts))
        order = np.argsort(all_starts, kind="stable")
        ordered = all_starts[order]
        order = order[np.append(ordered[1:] != ordered[:-1], True)[: len(order)]]
        self._starts = all_starts[order]
        self._sizes = np.concatenate((self._sizes, sizes))[order]
        self._names = np.concatenate((self._names, names + np.uint32(self._read_bytes)))[order]


def parse_perf_map(
    data: bytes,
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Starts, sizes and name positions of the lines that make sense."""
    rows = [
        (int(m[1], 16), min(int(m[2], 16), 0xFFFFFFFF), m.start(3)) for m in _LINE.finditer(data)
    ]
    if not rows:
        return np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0, np.uint32)
    starts, sizes, names = zip(*rows, strict=True)
    return np.array(starts, np.uint64), np.array(sizes, np.uint32), np.array(names, np.uint32)
