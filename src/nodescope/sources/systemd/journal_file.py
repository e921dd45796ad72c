"""One file of systemd's journal, read by its own format, without libsystemd.

The format is that of systemd's JOURNAL_FILE_FORMAT.md: a header, then objects
that point to each other. An entry is a list of offsets of data objects, each
`FIELD=value` once per file; each data object lists the entries it occurs in.
So the entries that have a certain field are found without looking at the
others: a flood of other lines costs nothing.

A file may be written to while it is read, may be damaged, and may be hostile:
every offset is checked against the file, chains are bounded, and what breaks
the format is a `MalformedSource`. Nothing is ever held but what was asked for.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource, SourceError, source_error
from nodescope.sources.systemd.journal_compression import decompress

MAX_FIELD_BYTES = 64 << 10
_MAX_ITEMS = 1024  # fields of an entry
_MAX_BUCKETS = 1 << 16
_NEAR = 256  # most data objects are smaller: one read for the whole of them
_SIGNATURE = b"LPKSHHRH"
_HEADER = struct.Struct("<8sIIB7x16s16s16s16s" + "Q" * 15)
_KNOWN = 1 | 2 | 4 | 8 | 16  # XZ, LZ4, keyed hash, ZSTD, compact
_COMPACT = 16
_DATA, _FIELD, _ENTRY, _FIELD_TABLE, _ARRAY = 1, 2, 3, 5, 6
_OBJECT = struct.Struct("<BB6xQ")
_DATA_HEAD = struct.Struct("<BB6xQ6Q")
_ENTRY_HEAD = struct.Struct("<BB6xQQQQ16sQ")
_OFFSET = struct.Struct("<Q")
_ARCHIVED = 2  # 0 is no end: journald goes offline whenever it has nothing to write


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a journal file; it changes while the file is written."""

    file_id: bytes
    compact: bool
    archived: bool  # nothing will be added any more
    header_bytes: int
    end: int
    field_table: tuple[int, int]
    entries: int
    head_seqnum: int
    tail_seqnum: int
    head_realtime_us: int
    tail_realtime_us: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry: its place in the order of things, and the offsets of its fields."""

    seqnum: int
    realtime_us: int
    monotonic_us: int
    boot_id: bytes
    items: tuple[int, ...]


@dataclass(slots=True)
class Cursor:
    """How far the entries of one data object were read."""

    data: int
    taken: int = 0
    array: int = 0  # the array that holds entry number `first`
    first: int = 1


class JournalFile:
    """An open file; `close` it, or use it as a context."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise source_error(path, error) from error
        try:
            self.inode = os.fstat(self._descriptor).st_ino
            self.header = self.read_header()
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> JournalFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def read_header(self) -> Header:
        """Read the header as it is now."""
        self._size = self._stat_size()
        raw = self._pread(0, _HEADER.size)
        signature, _, incompatible, state, file_id, _, _, _, *numbers = _HEADER.unpack(raw)
        if signature != _SIGNATURE:
            raise MalformedSource(self.path, "not a journal file")
        if incompatible & ~_KNOWN:
            raise MalformedSource(
                self.path, f"written by a later systemd: flags {incompatible & ~_KNOWN:#x}"
            )
        header_bytes, arena = numbers[0], numbers[1]
        if not 208 <= header_bytes <= 4096 or header_bytes + arena > self._size + (1 << 20):
            raise MalformedSource(self.path, "its header is damaged")
        self.header = Header(
            file_id=file_id,
            compact=bool(incompatible & _COMPACT),
            archived=state == _ARCHIVED,
            header_bytes=header_bytes,
            end=min(self._size, header_bytes + arena),
            field_table=(numbers[4], numbers[5]),
            entries=numbers[8],
            tail_seqnum=numbers[9],
            head_seqnum=numbers[10],
            head_realtime_us=numbers[12],
            tail_realtime_us=numbers[13],
        )
        return self.header

    # -- finding -----------------------------------------------------------

    def find_field(self, name: bytes) -> int | None:
        """The offset of a field's object; None while no entry has that field.

        The table is looked through whole: it is small, and so no hash need be known.
        """
        offset, size = self.header.field_table
        count = size // 16
        if offset == 0 or count == 0:
            return None
        if count > _MAX_BUCKETS:
            raise MalformedSource(self.path, "its table of fields is too large")
        table = self._pread(offset, count * 16)
        for bucket in range(count):
            at: int = _OFFSET.unpack_from(table, bucket * 16)[0]
            while at:
                size = self._object(at, _FIELD, 40)
                if size - 40 == len(name) and self._pread(at + 40, len(name)) == name:
                    return at
                following = self._offset_at(at + 24)
                if following and following <= at:  # what is later in a chain was written later
                    raise MalformedSource(self.path, "its table of fields runs in a circle")
                at = following
        return None

    def head_of(self, field: int) -> int:
        """The newest value of a field: changes when there is a new one."""
        return self._offset_at(field + 32)

    def values_of(self, field: int, stop: int = 0) -> Iterator[tuple[int, bytes]]:
        """The values of a field with their offsets, newest first, down to `stop`."""
        at = self.head_of(field)
        while at and at != stop:
            yield at, self.read_data(at)
            before = self._offset_at(at + 32)
            if before >= at:
                raise MalformedSource(self.path, "its list of values runs in a circle")
            at = before

    # -- entries -----------------------------------------------------------

    def count_of(self, data: int) -> int:
        """How many entries have this value."""
        return self._offset_at(data + 56)

    def take_new(self, cursor: Cursor, limit: int = 4096) -> list[int]:
        """Offsets of entries with that value that were not taken yet, at most `limit`."""
        self._object(cursor.data, _DATA, 64)
        _, _, _, _, _, _, first, array, count = _DATA_HEAD.unpack(
            self._pread(cursor.data, _DATA_HEAD.size)
        )
        offsets: list[int] = []
        if cursor.taken == 0 and count > 0 and first:
            offsets.append(first)
            cursor.taken = 1
        while cursor.taken < count and len(offsets) < limit:
            cursor.array = cursor.array or array
            if not cursor.array:
                break
            found = self._from_array(cursor, min(count, cursor.taken + limit - len(offsets)))
            if not found:
                break
            offsets.extend(found)
        return offsets

    def skip_to(self, cursor: Cursor, remaining: int) -> None:
        """Pass over the oldest entries, so that at most `remaining` are left to take."""
        skip = self.count_of(cursor.data) - remaining
        if skip <= cursor.taken:
            return
        cursor.array = cursor.array or self._offset_at(cursor.data + 48)
        cursor.taken = max(cursor.taken, 1)
        while cursor.array:
            capacity, following = self._array(cursor.array)
            if skip < cursor.first + capacity or not following:
                break
            cursor.array, cursor.first = following, cursor.first + capacity
        cursor.taken = max(cursor.taken, min(skip, self.count_of(cursor.data)))

    def _from_array(self, cursor: Cursor, until: int) -> list[int]:
        """Offsets from the array at the cursor, which moves on; empty at the end of what is."""
        capacity, following = self._array(cursor.array)
        at = cursor.taken - cursor.first
        if at < 0:
            raise MalformedSource(self.path, "its lists of entries are damaged")
        if at >= capacity:
            if not following:
                return []
            cursor.array, cursor.first = following, cursor.first + capacity
            return self._from_array(cursor, until)
        width, letter = (4, "I") if self.header.compact else (8, "Q")
        wanted = min(capacity - at, until - cursor.taken)
        raw = self._pread(cursor.array + 24 + at * width, wanted * width)
        offsets: list[int] = []
        for offset in struct.unpack(f"<{wanted}{letter}", raw):
            if offset == 0:
                break  # being written
            offsets.append(offset)
        cursor.taken += len(offsets)
        return offsets

    def _array(self, offset: int) -> tuple[int, int]:
        """An entry array's capacity and the one that follows."""
        size = self._object(offset, _ARRAY, 24)
        following = self._offset_at(offset + 16)
        if following and following <= offset:
            raise MalformedSource(self.path, "its lists of entries run in a circle")
        capacity = (size - 24) // (4 if self.header.compact else 8)
        if capacity <= 0:
            raise MalformedSource(self.path, "an empty list of entries")
        return capacity, following

    def read_entry(self, offset: int) -> JournalEntry:
        """The entry at an offset."""
        size = self._object(offset, _ENTRY, 64)
        width, step, letter = (4, 4, "I") if self.header.compact else (16, 8, "Q")
        count = (size - 64) // width
        if count > _MAX_ITEMS:
            raise MalformedSource(self.path, f"an entry of {count} fields")
        raw = self._pread(offset, 64 + count * width)
        _, _, _, seqnum, realtime, monotonic, boot_id, _ = _ENTRY_HEAD.unpack_from(raw)
        items = struct.unpack_from(f"<{count * width // step}{letter}", raw, 64)
        return JournalEntry(seqnum, realtime, monotonic, boot_id, items[:: width // step])

    def read_data(self, offset: int) -> bytes:
        """`FIELD=value` of a data object, decompressed."""
        start = 72 if self.header.compact else 64
        near = self._pread(offset, min(_NEAR, max(start, self._size - offset)))
        _, flags, size = _OBJECT.unpack_from(near)
        self._check(offset, near[:16], _DATA, start)
        length = size - start
        if length > MAX_FIELD_BYTES:
            if flags & 7:
                raise MalformedSource(self.path, f"a compressed field of {length} bytes")
            length = MAX_FIELD_BYTES  # what a person would read of it
        if size <= len(near):
            payload = near[start:size]
        else:
            payload = self._pread(offset + start, length)
        if flags & 7:
            return decompress(flags & 7, payload, 16 * MAX_FIELD_BYTES, str(self.path))
        return payload

    # -- bytes -------------------------------------------------------------

    def _object(self, offset: int, kind: int, least: int) -> int:
        """The size of the object at `offset`, which must be of that kind."""
        return self._check(offset, self._pread(offset, 16), kind, least)

    def _check(self, offset: int, raw: bytes, kind: int, least: int) -> int:
        found, _, size = _OBJECT.unpack(raw)
        if found != kind or size < least or offset % 8 or offset + size > self._size:
            raise MalformedSource(self.path, f"a damaged object at byte {offset}")
        return int(size)

    def _offset_at(self, offset: int) -> int:
        """The number of eight bytes at `offset`."""
        number: int = _OFFSET.unpack(self._pread(offset, 8))[0]
        return number

    def _stat_size(self) -> int:
        try:
            return os.fstat(self._descriptor).st_size
        except OSError as error:
            raise source_error(self.path, error) from error

    def _pread(self, offset: int, length: int) -> bytes:
        if offset + length > self._size:
            self._size = self._stat_size()  # it grows while we read
        if offset < 0 or offset + length > self._size:
            raise MalformedSource(self.path, f"it ends before byte {offset + length}")
        try:
            raw = os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise source_error(self.path, error) from error
        if len(raw) < length:
            raise SourceError(self.path, "it became shorter while it was read")
        return raw
