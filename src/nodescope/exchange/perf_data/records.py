"""Where the records of a `perf.data` file are.

Records are walked by their sizes alone, a few million words at a time, and what
is not a plain record is then looked for in what the walk found: trace data that
follows a record beyond its size is stepped over, and at the first compressed
record (`perf record -z`) the rest of the file is unpacked into a temporary file.

All chunks of one file are one zstd stream, flushed at each chunk; records may
straddle chunks. Chunks need not be aligned to 8 bytes (those of COMPRESSED2,
perf 6.16, are), so that only there the walk is by bytes.

A file that is cut, or whose records make no sense from some offset on, has the
records before that; `stopped_at` and `stopped_why` say so.
"""

from __future__ import annotations

import mmap
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.errors import MalformedSource
from nodescope.exchange.perf_data.header import (
    EVENT_UPDATE,
    HEADER_ATTR,
    HEADER_BUILD_ID,
    HEADER_FEATURE,
    PerfHeader,
    read_pipe_record,
)
from nodescope.perf.decode import SAMPLE, Bytes

TRACING_DATA, FINISHED_ROUND, AUXTRACE, COMPRESSED, COMPRESSED2 = 66, 68, 71, 81, 83
_SPECIAL = np.zeros(256, bool)
_SPECIAL[[TRACING_DATA, AUXTRACE, COMPRESSED, COMPRESSED2]] = True
_PIPE = (HEADER_ATTR, HEADER_BUILD_ID, EVENT_UPDATE, HEADER_FEATURE)
_PIECE_WORDS = 4 << 20
_PLACES = 1 << 17  # words that are read here and there before pages are given back
_LEAST_RUN = 8  # records in a run, on average, for runs to be worth looking for
_UNPACK_BYTES = 64 << 10  # what a damaged chunk costs of what is before it
_COPY_BYTES = 1 << 20
_MAX_RATIO = 256  # unpacked to packed; perf's own is 5 to 50
# A zstd block that is the last, raw and empty: ends the frame that perf only ever flushes.
_LAST_BLOCK = b"\x01\x00\x00"
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(slots=True)
class Records:
    """The records of a file, in file order."""

    data: Bytes
    words: U64
    at: I64  # the word each starts at
    kind: I64
    misc: I64
    size: I64  # in words
    stopped_at: int | None = None
    stopped_why: str = ""
    notes: list[str] = field(default_factory=list)

    def read_words(self, places: I64) -> U64:
        """Return the words at these places, of which hardly any two are on one page.

        The pages are given back meanwhile: or the whole file would lie in our memory.
        """
        found = np.empty(len(places), np.uint64)
        for begin in range(0, len(places), _PLACES):
            part = slice(begin, begin + _PLACES)
            found[part] = self.words[places[part]]
            give_back(self.data)
        return found


@dataclass(slots=True)
class _Walk:
    parts: list[I64]
    heads: list[U64]  # the first word of each record, while its page is at hand
    end: int  # the byte it came to
    why: str = ""
    compressed: bool = False


def find_records(data: Bytes, size: int, header: PerfHeader) -> Records:
    """Find all records; in pipe mode, take in what they tell about the file."""
    start, end = header.data_offset, size
    why = ""
    if header.data_bytes is not None:
        end = min(size, start + header.data_bytes)
        if size < start + header.data_bytes:
            why = f"the file ends {start + header.data_bytes - size} bytes before its data should"
    if header.is_pipe:
        start = _read_preamble(header, data, start, end)
    origin = 0
    if start & 7:
        data, origin = _realigned(data, start, end), start
    walk = _walk(data, start - origin, end - origin)
    records = _gather(data, walk)
    if walk.compressed:
        records = _unpack(data, records, walk.end, end - origin)
    elif walk.end < end - origin or walk.why:
        records.stopped_at, records.stopped_why = walk.end, walk.why or "the last record is cut"
    if records.stopped_at is not None:
        records.stopped_at += origin
    if why:
        records.stopped_at = records.stopped_at or end
        records.stopped_why = why
    if header.is_pipe:
        for row in np.flatnonzero(np.isin(records.kind, _PIPE)).tolist():
            first = int(records.at[row]) * 8
            body = records.data[first + 8 : first + 8 * int(records.size[row])]
            read_pipe_record(header, int(records.kind[row]), int(records.misc[row]), body)
    return records


def _read_preamble(header: PerfHeader, data: Bytes, at: int, end: int) -> int:
    """Take in what stands before the kernel's records, whose sizes need not be whole words."""
    while at + 8 <= end:
        kind, misc, size = struct.unpack("<IHH", data[at : at + 8])
        if kind < HEADER_ATTR or size < 8 or at + size > end:
            break
        if kind in (TRACING_DATA, AUXTRACE, COMPRESSED, COMPRESSED2):
            break
        read_pipe_record(header, kind, misc, data[at + 8 : at + size])
        at += size
    return at


def _realigned(data: Bytes, start: int, end: int) -> Bytes:
    """A copy of a part of the file, in a file of its own: words must start at whole words."""
    if start >= end:
        return b""
    with tempfile.TemporaryFile(prefix="nodescope-import-") as file:
        for at in range(start, end, _COPY_BYTES):
            file.write(data[at : min(end, at + _COPY_BYTES)])
        file.flush()
        return mmap.mmap(file.fileno(), end - start, access=mmap.ACCESS_READ)


def give_back(data: Bytes) -> None:
    """Let the kernel have the pages that were read: they are the file's, not ours."""
    if isinstance(data, mmap.mmap):
        data.madvise(mmap.MADV_DONTNEED)


def _gather(data: Bytes, walk: _Walk) -> Records:
    head = np.concatenate([np.empty(0, np.uint64), *walk.heads])
    return Records(
        data,
        words=np.frombuffer(data, np.uint64, len(data) // 8),
        at=np.concatenate([np.empty(0, np.int64), *walk.parts]),
        kind=(head & _LOW).astype(np.int64),
        misc=((head >> np.uint64(32)) & np.uint64(0xFFFF)).astype(np.int64),
        size=(head >> np.uint64(51)).astype(np.int64),
    )


def _walk(data: Bytes, start: int, end: int) -> _Walk:
    """Find the records from byte `start` on, which must be a multiple of 8."""
    walk = _Walk([], [], start)
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    at, stop = start >> 3, min(end >> 3, len(words))
    while at < stop:
        rows, at = _walk_piece(words, at, min(stop, at + _PIECE_WORDS))
        head = words[rows]
        kind = np.minimum(head & _LOW, np.uint64(255)).astype(np.int64)
        odd = (head >> np.uint64(48)) & np.uint64(7) != 0
        odd |= head >> np.uint64(51) == 0
        special = np.flatnonzero(odd | _SPECIAL[kind])
        if len(special):
            first = int(special[0])
            walk.parts.append(rows[:first])
            walk.heads.append(head[:first])
            at = int(rows[first])
            step = _step_over(words, at, int(kind[first]), bool(odd[first]), walk)
            if not step:
                break
            at += step
            if at > stop:
                at -= step
                walk.why = "trace data is cut"
                break
        elif at > stop:
            walk.parts.append(rows[:-1])
            walk.heads.append(head[:-1])
            at = int(rows[-1])
            walk.why = "the last record is cut"
            break
        else:
            walk.parts.append(rows)
            walk.heads.append(head)
            give_back(data)
    walk.end = at * 8
    if not walk.why and not walk.compressed and at == stop and end & 7:
        walk.why = "the last record is cut"
    return walk


def _walk_piece(words: U64, at: int, end: int) -> tuple[I64, int]:
    """The words at which records start, and where the walk came to.

    Nearly all records are samples, one after the other. Words that could begin one
    are found all at once, and of these the runs in which each ends where the next
    begins are taken as a whole; between runs the walk goes by sizes.
    """
    halves = words[at:end].view(np.uint32)
    likely = np.flatnonzero(halves[::2] == SAMPLE)
    size = (halves[2 * likely + 1] >> np.uint32(19)).astype(np.int64)
    likely, size = likely[size > 0] + at, size[size > 0]
    breaks = np.flatnonzero(likely[:-1] + size[:-1] != likely[1:])
    lasts = np.append(breaks, len(likely) - 1)  # of each run
    if len(lasts) * _LEAST_RUN > len(likely):
        return _walk_by_sizes(words, at, end, end)
    found: list[I64] = []
    while at < end:
        row = int(np.searchsorted(likely, at))
        if row == len(likely) or likely[row] != at:
            following = end if row == len(likely) else int(likely[row])
            alone, at = _walk_by_sizes(words, at, following, end)
            found.append(alone)
            if at < end and not words[at] >> np.uint64(51):
                break
        else:
            last = int(lasts[np.searchsorted(lasts, row)])
            found.append(likely[row : last + 1])
            at = int(likely[last] + size[last])
    return np.concatenate(found), at


def _walk_by_sizes(words: U64, at: int, until: int, end: int) -> tuple[I64, int]:
    """The walk from record to record, up to or past the word `until`."""
    found: list[int] = []
    append = found.append
    sizes = words[:end].view(np.uint16)[3::4].data  # of a record that starts there
    while at < until:
        append(at)
        step = sizes[at] >> 3
        if not step:
            break
        at += step
    return np.array(found, np.int64), at


def _step_over(words: U64, at: int, kind: int, odd: bool, walk: _Walk) -> int:
    """Words to go on by; 0 where the walk ends, for a reason that stands in `walk`."""
    size = int(words[at] >> np.uint64(48))
    if kind in (COMPRESSED, COMPRESSED2):
        walk.compressed = True
        return 0
    if odd:
        walk.why = f"a record of kind {kind} says it has {size} bytes"
        return 0
    following = int(words[at + 1]) if size >= 16 and at + 1 < len(words) else 0
    if kind == TRACING_DATA:
        following &= 0xFFFFFFFF
    return (size >> 3) + ((following + 7) >> 3)


# -- compressed ----------------------------------------------------------------


class _Chunks:
    """The compressed bytes of a file as one stream; other records are kept aside."""

    closed = False

    def __init__(self, data: Bytes, start: int, end: int) -> None:
        self.plain = bytearray()
        self.at = start
        self.why = ""
        self._data = data
        self._end = end
        self._rest = b""
        self._chunks = self._walk()

    def read(self, size: int = -1) -> bytes:
        """The next bytes, not more than `size`."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._rest = chunk
        taken = self._rest if size < 0 else self._rest[:size]
        self._rest = self._rest[len(taken) :]
        return taken

    def _walk(self) -> Iterator[bytes]:
        while self.at + 8 <= self._end:
            kind, _, size = struct.unpack("<IHH", self._data[self.at : self.at + 8])
            if size < 8:
                self.why = f"a record of kind {kind} says it has {size} bytes"
                break
            if self.at + size > self._end:
                self.why = "the last record is cut"
                break
            body = self._data[self.at + 8 : self.at + size]
            if kind == COMPRESSED2:
                length = int.from_bytes(body[:8], "little")
                body = body[8 : 8 + length]
            elif kind in (AUXTRACE, TRACING_DATA):
                following = int.from_bytes(body[: 8 if kind == AUXTRACE else 4], "little")
                size += (following + 7) & ~7
            elif kind != COMPRESSED and size & 7 == 0:
                self.plain += self._data[self.at : self.at + size]
            if kind in (COMPRESSED, COMPRESSED2):
                yield body
            self.at += size
        else:
            if self.at < self._end:
                self.why = "the last record is cut"
        yield _LAST_BLOCK

    def close(self) -> None:
        """Nothing is held open."""

    def readable(self) -> bool:
        return True


def _unpack(data: Bytes, before: Records, start: int, end: int) -> Records:
    """The records of a file that is compressed from byte `start` on."""
    import pyarrow as pa  # 100 ms that plain files need not pay

    chunks = _Chunks(data, start, end)
    unpacked = 0
    why = ""
    with tempfile.TemporaryFile(prefix="nodescope-import-") as file:
        plain = [bytes(_bytes_of(before))]
        try:
            # No codec of the standard library of 3.11 unpacks a zstd stream; Arrow's does.
            source: Any = pa.PythonFile(chunks, mode="r")
            stream: Any = pa.CompressedInputStream(source, "zstd")
            while piece := stream.read(_UNPACK_BYTES):
                unpacked += len(piece)
                if unpacked > _MAX_RATIO * (end - start) + (64 << 20):
                    why = f"it unpacks to more than {_MAX_RATIO} times its size"
                    break
                file.write(piece)
        except (pa.ArrowException, OSError) as error:
            why = f"a compressed chunk cannot be unpacked: {str(error).splitlines()[0]}"
        rest = file.tell() & 7
        file.write(b"\0" * (-rest & 7))
        inner_end = file.tell() - (8 if rest else 0)
        plain.append(bytes(chunks.plain))
        for part in plain:
            file.write(part)
        file.flush()
        total = file.tell()
        if not total:
            inside: Bytes = b""
        else:
            inside = mmap.mmap(file.fileno(), total, access=mmap.ACCESS_READ)
    inner = _walk(inside, 0, inner_end)
    outer = _walk(inside, total - sum(map(len, plain)), total)
    # What perf wrote plainly comes first: names and mappings of what ran before.
    both = _Walk([*outer.parts, *inner.parts], [*outer.heads, *inner.heads], total)
    records = _gather(inside, both)
    why = why or chunks.why
    if not why and inner.end < inner_end:
        why = inner.why or "the last record is cut"
    if why:
        records.stopped_at, records.stopped_why = chunks.at, why
    return records


def _bytes_of(records: Records) -> bytearray:
    content = bytearray()
    for at, size in zip(records.at.tolist(), records.size.tolist(), strict=True):
        content += records.data[8 * at : 8 * (at + size)]
    return content


@contextmanager
def saying_where_it_stopped(records: Records, path: Path) -> Iterator[None]:
    """Raise what is wrong with a cut file together with where it was cut: that explains it."""
    try:
        yield
    except MalformedSource as error:
        if records.stopped_at is None:
            raise
        where = f"it could be read up to byte {records.stopped_at}: {records.stopped_why}"
        raise MalformedSource(path, f"{error.reason}; {where}", hint=error.hint) from error
