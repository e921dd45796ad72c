"""The open segment: one Arrow IPC stream per table, cut back to whole batches.

A stream is its schema message followed by batches, each with the dictionaries
of its `text` columns in front of it (in Arrow's terms: replaced each time), so
a batch depends on nothing but the schema. Encoding is therefore stateless, and
a file that was cut back to its last whole batch can simply be appended to.
There is no end-of-stream mark: a stream ends where its bytes end.
"""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from nodescope.archive.files import archive_error, open_private, translated, write_all
from nodescope.archive.schema import arrow_schema, conform
from nodescope.records import OPEN_TABLES

# Threads would gain nothing on batches this small, and stay in the recorder for ever.
_WRITE_OPTIONS = pa.ipc.IpcWriteOptions(use_threads=False)
_READ_OPTIONS = pa.ipc.IpcReadOptions(use_threads=False)


def stream_path(directory: Path, table: str) -> Path:
    """Where the stream of a table lies."""
    return directory / f"{table}.arrows"


def stream_size(directory: Path, table: str) -> int:
    """The bytes of a stream so far; 0 if it has none."""
    try:
        return stream_path(directory, table).lstat().st_size
    except FileNotFoundError:
        return 0


@cache
def _schema_message(table: str) -> bytes:
    # The very bytes that a stream writer puts first; `_encode` takes them off again.
    return bytes(arrow_schema(table).serialize())


def _encode(table: str, batch: Any) -> memoryview:
    """The bytes that append `batch` to the stream of `table`."""
    sink = pa.BufferOutputStream()
    # Closing would write an end-of-stream mark, behind which nobody reads on;
    # so the bytes are taken before the writer is closed.
    writer = pa.ipc.new_stream(sink, arrow_schema(table), options=_WRITE_OPTIONS)
    writer.write_batch(batch)
    length = sink.tell()
    writer.close()
    return memoryview(sink.getvalue())[len(_schema_message(table)) : length]


class OpenStreams:
    """The streams of one open segment, written by its recorder."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._descriptors: dict[str, int] = {}
        self._sizes: dict[str, int] = {}

    def write(self, batches: dict[str, list[Any]]) -> int:
        """Write and sync all `batches`, or none of them; returns the bytes written.

        When the device refuses, every stream is cut back to where it was, so
        the same call may be made again later.
        """
        before = dict(self._sizes)
        table = ""
        try:
            for table in OPEN_TABLES:
                if batches.get(table):
                    self._append(table, batches[table])
            for table in OPEN_TABLES:
                if batches.get(table):
                    os.fdatasync(self._descriptors[table])
        except OSError as error:
            self._cut_back(before)
            raise archive_error(stream_path(self.directory, table), error) from error
        return sum(self._sizes.values()) - sum(before.values())

    def _append(self, table: str, batches: list[Any]) -> None:
        if table not in self._descriptors:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            self._descriptors[table] = open_private(stream_path(self.directory, table), flags)
            self._sizes[table] = 0
        descriptor = self._descriptors[table]
        if os.fstat(descriptor).st_size != self._sizes[table]:
            os.ftruncate(descriptor, self._sizes[table])
        pieces = [] if self._sizes[table] else [memoryview(_schema_message(table))]
        pieces += [_encode(table, batch) for batch in batches]
        for piece in pieces:
            write_all(descriptor, piece)
            self._sizes[table] += len(piece)

    def _cut_back(self, sizes: dict[str, int]) -> None:
        for table, descriptor in self._descriptors.items():
            size = sizes.get(table, 0)
            # If even this fails, a reader still stops at the torn batch, and
            # `_append` tries again before anything is written behind it.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, size)
            self._sizes[table] = size

    @property
    def bytes(self) -> int:
        """What the streams hold so far."""
        return sum(self._sizes.values())

    def close(self) -> None:
        """Close the files; what was flushed stays."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


def has_streams(directory: Path) -> bool:
    """Return whether anything was ever flushed into an open segment: a full disk takes nothing."""
    return any(stream_size(directory, table) for table in OPEN_TABLES)


def read_stream(directory: Path, table: str) -> Any:
    """The whole batches of a stream as one table; a torn tail is where it ends."""
    batches = _whole_batches(stream_path(directory, table), table)
    return pa.Table.from_batches(batches, schema=arrow_schema(table)).unify_dictionaries()


def _whole_batches(path: Path, table: str) -> list[Any]:
    batches: list[Any] = []
    try:
        descriptor = open_private(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return batches
    except OSError as error:
        raise archive_error(path, error) from error
    with os.fdopen(descriptor, "rb") as file, translated(path):
        data = pa.py_buffer(file.read())
    # A torn tail shows as whatever Arrow makes of it: a short read, metadata
    # that is no flatbuffer, a type that does not exist, a length without sense.
    schema = arrow_schema(table)
    with contextlib.suppress(pa.ArrowException, OSError, ValueError, KeyError, MemoryError):
        stream = pa.ipc.open_stream(data, options=_READ_OPTIONS)
        for batch in stream:
            batch.validate(full=True)
            if batch.schema.names != schema.names:  # an older version left the segment open
                batch = conform(table, batch, schema.names)
            if batch.schema != schema:
                return batches
            batches.append(batch)
    return batches
