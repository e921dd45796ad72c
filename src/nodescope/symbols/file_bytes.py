"""Bounded reads from a file nobody vouches for.

A binary is never mapped (another process may truncate it: SIGBUS) and never
read whole. `FileBytes` holds an open descriptor and answers `read_at` with
exactly the bytes asked for, or raises `Unresolvable`. `MemoryBytes` gives the
same to images that are not files: the vdso, unpacked debug data.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Protocol

from nodescope.symbols.unresolved import Reason, Unresolvable, reason_of

MAX_READ_BYTES = 1 << 20
"""No single read is larger, so that no file can make us allocate more."""

MAX_NAME_BYTES = 4096
"""Longest symbol name read from a string table; longer ones are cut."""

# O_NONBLOCK: opening a FIFO must not wait for its writer. O_NOCTTY: opening a
# terminal must not make it ours.
OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class ByteSource(Protocol):
    """Random access with a known size."""

    label: str
    size: int

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes at `offset`, or `Unresolvable`."""

    def read_up_to(self, offset: int, length: int) -> bytes:
        """At most `length` bytes at `offset`; fewer only at the end."""

    def close(self) -> None:
        """Let go of the descriptor, if there is one."""


class FileBytes:
    """A regular file behind a descriptor that stays open until `close`."""

    def __init__(self, path: str, *, follow: bool = True) -> None:
        """With `follow` off, a symbolic link is not a regular file."""
        self.label = path
        self._fd = -1
        try:
            self._fd = os.open(path, OPEN_FLAGS | (0 if follow else os.O_NOFOLLOW))
            self.status = os.fstat(self._fd)
        except OSError as error:
            self.close()
            if error.errno == errno.ELOOP and not follow:
                raise Unresolvable(path, Reason.NOT_REGULAR, "a symbolic link") from error
            raise Unresolvable(path, reason_of(error), error.strerror or "") from error
        except ValueError as error:  # a NUL byte inside the path
            raise Unresolvable(path, Reason.ABSENT, str(error)) from error
        if not stat.S_ISREG(self.status.st_mode):
            self.close()
            raise Unresolvable(path, Reason.NOT_REGULAR)
        self.size = self.status.st_size

    @property
    def is_open(self) -> bool:
        """Return whether `close` has not been called."""
        return self._fd >= 0

    def grow(self) -> None:
        """See what was appended since it was opened."""
        try:
            self.size = os.fstat(self._fd).st_size
        except OSError as error:
            raise Unresolvable(self.label, reason_of(error), error.strerror or "") from error

    def unchanged(self) -> bool:
        """Return whether the inode still has the size and mtime it was opened with.

        Our descriptor pins the inode, so its number cannot be given to another
        file: this one fstat revalidates everything known about the file.
        """
        try:
            now = os.fstat(self._fd)
        except OSError:
            return False
        return now.st_size == self.size and now.st_mtime_ns == self.status.st_mtime_ns

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes at `offset`, or `Unresolvable`."""
        if offset < 0 or length < 0:
            raise Unresolvable(self.label, Reason.MALFORMED, "negative offset or length")
        if offset + length > self.size:
            raise Unresolvable(self.label, Reason.TRUNCATED)
        data = self.read_up_to(offset, length)
        if len(data) != length:
            raise Unresolvable(self.label, Reason.TRUNCATED)
        return data

    def read_up_to(self, offset: int, length: int) -> bytes:
        """At most `length` bytes at `offset`; fewer only at the end."""
        if self._fd < 0:
            raise Unresolvable(self.label, Reason.EVICTED)
        if offset < 0 or offset >= self.size:
            return b""
        if length > MAX_READ_BYTES:
            raise Unresolvable(self.label, Reason.TOO_LARGE, f"{length} bytes in one read")
        try:
            return os.pread(self._fd, length, offset)
        except OSError as error:
            raise Unresolvable(self.label, reason_of(error), error.strerror or "") from error

    def close(self) -> None:
        """Close the descriptor; reads fail as evicted from then on."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __del__(self) -> None:
        self.close()


class MemoryBytes:
    """The same over bytes already in memory."""

    def __init__(self, data: bytes, label: str) -> None:
        self.label = label
        self.size = len(data)
        self._data = data

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes at `offset`, or `Unresolvable`."""
        if offset < 0 or length < 0:
            raise Unresolvable(self.label, Reason.MALFORMED, "negative offset or length")
        if offset + length > self.size:
            raise Unresolvable(self.label, Reason.TRUNCATED)
        return self._data[offset : offset + length]

    def read_up_to(self, offset: int, length: int) -> bytes:
        """At most `length` bytes at `offset`; fewer only at the end."""
        if offset < 0 or offset >= self.size:
            return b""
        return self._data[offset : offset + length]

    def close(self) -> None:
        """Nothing to let go of; the collector frees the bytes."""


def read_name(source: ByteSource, offset: int, end: int) -> str:
    """The NUL-terminated name at `offset`, not reading at or past `end`.

    Names are short: one read of 256 bytes serves nearly all of them.
    """
    room = max(end - offset, 0)
    data = source.read_up_to(offset, min(256, room))
    if b"\0" not in data and len(data) < room:
        data = source.read_up_to(offset, min(MAX_NAME_BYTES, room))
    data = data.partition(b"\0")[0]
    return printable(data.decode("utf-8", "replace"))


def printable(name: str) -> str:
    """`name` with anything that could break a terminal or a line replaced."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
