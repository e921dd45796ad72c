"""Names of just-in-time compiled code, from `perf-PID.map` files.

A runtime that wants to be profiled (node --perf-basic-prof, Java agents,
Python -X perf, .NET) appends lines `START SIZE name`, in hex, to
`/tmp/perf-<its own pid>.map` (Linux tools/perf/Documentation/jit-interface.txt).
The process may live in a container: the path goes through `/proc/PID/root` and
its innermost NSpid. One that has ended is named by the map we have open, else by
the one it left in our own `/tmp`, if its owner and time say that it is its own.

The file belongs to whoever runs the process, so: it must be a regular file and no
link, owned by that user or root, at most `MAX_FILE_BYTES` are read, `PIECES_PER_UPDATE`
pieces per update, lines that make no sense are skipped and counted. Names are read
from the file again when shown; 16 bytes per entry are kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nodescope.quantities import SECOND_NS
from nodescope.symbols.file_bytes import (
    MAX_NAME_BYTES,
    FileBytes,
    printable,
)
from nodescope.symbols.mounts import is_remote
from nodescope.symbols.unresolved import Reason, Unresolvable

MAX_FILE_BYTES = 64 << 20
MAX_ENTRIES = 1_000_000
MAX_NESTING = 4
PIECE_BYTES = 256 << 10
PIECES_PER_UPDATE = 8
_MAX_STATUS_BYTES = 16 << 10
_COARSE_NS = SECOND_NS  # how far file times may be behind the clock, by far

_LINE = re.compile(
    rb"^(?:0x)?([0-9a-fA-F]{1,16}) (?:0x)?([0-9a-fA-F]{1,16}) ([^\n]+)\n", re.MULTILINE
)
_NSPID = re.compile(rb"^NSpid:\s*(?:\d+\s+)*(\d+)\s*$", re.MULTILINE)
_UID = re.compile(rb"^Uid:\s*\d+\s+(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileOwner:
    """Whose map it is: the file's owner must be this user, and its name has this pid."""

    uid: int
    pid: int


class PerfMap:
    """One process's map; `update` follows its growth, `resolve` names addresses.

    `reason` is why addresses that it does not name have no name.
    """

    def __init__(
        self,
        pid: int,
        proc_root: Path = Path("/proc"),
        own_tmp: Path = Path("/tmp"),  # noqa: S108 - the runtimes' choice, hence the checks
    ) -> None:
        self._pid = pid
        self._proc = proc_root / str(pid)
        self._own_tmp = own_tmp
        self._parent: int | None = None
        self._owner: FileOwner | None = None
        self._not_before_ns = 0  # of the wall clock: older maps are of an earlier process
        self._file: FileBytes | None = None
        self._read_bytes = 0
        self._starts = np.empty(0, np.uint64)
        self._sizes = np.empty(0, np.uint32)
        self._names = np.empty(0, np.uint32)
        self.failures: Counter[Reason] = Counter()
        self.reason = Reason.NO_FUNCTION

    @property
    def nbytes(self) -> int:
        """Return the memory of the arrays."""
        return self._starts.nbytes + self._sizes.nbytes + self._names.nbytes

    def __len__(self) -> int:
        return len(self._starts)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def is_open(self) -> bool:
        """Return whether the file is kept open, and so outlives the process."""
        return self._file is not None

    def meet(self, mapped_ns: int, parent: int | None = None) -> bool:
        """Open the map of a process that mapped code at that monotonic time; whether there is one.

        From then on it is known whose the process is, also when it has ended. One that has
        ended by now ran, as far as can be known, as the user its `parent` runs as.
        """
        if not self._not_before_ns:
            self._not_before_ns = time.time_ns() - (time.monotonic_ns() - mapped_ns) - _COARSE_NS
            self._parent = parent
        try:
            self._reopen()
        except Unresolvable as error:
            self.reason = error.why
        return self.is_open

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
                    self.reason = Reason.NO_FUNCTION
                    break
                grown = True
            else:
                self.reason = Reason.TOO_LARGE  # to be read at once
            return grown
        except Unresolvable as error:
            self.failures[error.why] += 1
            self.reason = error.why
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
        try:
            file = self._open_living()
        except Unresolvable as error:
            if error.why is not Reason.PROCESS_GONE:
                raise
            if self._file is not None:  # all it has written, and it will write no more
                self._file.grow()
                self._cap(self._file)
                return
            file = self._open_left()
        self._cap(file)
        old, self._file = self._file, file
        if old is not None:
            same = old.status.st_ino == file.status.st_ino
            old.close()
            if same and file.size >= self._read_bytes:
                return
        self._read_bytes = 0
        self._starts, self._sizes, self._names = self._starts[:0], self._sizes[:0], self._names[:0]

    def _open_living(self) -> FileBytes:
        """The map in the `/tmp` that the process has."""
        self._owner = self._read_status(self._proc)
        path = f"/tmp/perf-{self._owner.pid}.map"  # noqa: S108 - as above
        if is_remote(str(self._proc / "mountinfo"), path):
            raise Unresolvable(path, Reason.REMOTE)
        try:
            return _open_of(f"{self._proc}/root{path}", self._owner.uid)
        except Unresolvable as error:
            if error.why is Reason.ABSENT and not (self._proc / "root").is_dir():
                # Ended, but not waited for: it has a status still, and no files.
                raise Unresolvable(path, Reason.PROCESS_GONE) from error
            raise

    def _open_left(self) -> FileBytes:
        """The map that a process which has ended left in our own `/tmp`."""
        path = f"{self._own_tmp}/perf-{self._pid}.map"
        gone = Unresolvable(path, Reason.PROCESS_GONE)
        if self._owner is None and self._parent is not None:
            with contextlib.suppress(Unresolvable):  # else only root and we are believed
                parent = self._read_status(self._proc.with_name(str(self._parent)))
                self._owner = FileOwner(parent.uid, self._pid)
        if self._owner is not None and self._owner.pid != self._pid:
            raise gone  # of a container, whose /tmp went with it: ours is another
        if is_remote(str(self._proc.with_name("self") / "mountinfo"), path):
            raise Unresolvable(path, Reason.REMOTE)
        try:
            file = _open_of(path, os.geteuid() if self._owner is None else self._owner.uid)
        except Unresolvable as error:
            raise (gone if error.why is Reason.ABSENT else error) from error
        if file.status.st_mtime_ns < self._not_before_ns:
            file.close()
            raise gone  # written before there was any code to name: of an earlier process
        return file

    def _cap(self, file: FileBytes) -> None:
        if file.size > MAX_FILE_BYTES:
            self.failures[Reason.TOO_LARGE] += 1
            file.size = MAX_FILE_BYTES

    def _read_status(self, process: Path) -> FileOwner:
        path = str(process / "status")
        try:
            with open(path, "rb") as status:
                data = status.read(_MAX_STATUS_BYTES)
        except OSError as error:
            raise Unresolvable(path, Reason.PROCESS_GONE) from error
        uid, nspid = _UID.search(data), _NSPID.search(data)
        if uid is None or nspid is None:
            raise Unresolvable(path, Reason.MALFORMED)
        return FileOwner(int(uid[1]), int(nspid[1]))

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


def _open_of(path: str, uid: int) -> FileBytes:
    """A file that must belong to that user or to root."""
    file = FileBytes(path, follow=False)
    if file.status.st_uid not in (0, uid):
        file.close()
        raise Unresolvable(path, Reason.DENIED, "owned by somebody else")
    return file


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
