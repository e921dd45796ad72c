"""Journals as `journalctl -o export` writes them (systemd's Journal Export Format).

An entry is a row of fields, ended by an empty line: `NAME=value`, or for a value with line
breaks or bytes that are no text `NAME`, its length in eight bytes, the value, a line break.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from nodescope.exchange.import_formats import ImportFormat, Progress
from nodescope.exchange.importer import detects, import_wall_events, peek_events
from nodescope.exchange.logs.journal import MAX_OBJECT_BYTES, events_of
from nodescope.ingest.parsed import Notes
from nodescope.ingest.sink import ImportReport, Sink
from nodescope.records.event import Event

_LENGTH_BYTES = 8


def looks_like_journal_export(head: bytes) -> bool:
    """Return whether a file begins with an entry of that format."""
    first = head.lstrip(b"\n").split(b"\n\n", 1)[0]
    return first.startswith(b"__CURSOR=") and b"\n__REALTIME_TIMESTAMP=" in first


def parse_journal_export(blocks: Iterable[bytes], notes: Notes) -> Iterator[list[Event]]:
    """Yield events in batches, on the wall clock."""
    return events_of(_read_entries(blocks, notes), notes)


def _read_entries(blocks: Iterable[bytes], notes: Notes) -> Iterator[dict[str, str]]:
    """Yield entries; of several values of one field the first counts."""
    reader = _Reader(blocks)
    entry: dict[str, str] = {}
    while (line := reader.line()) is not None:
        notes.offset = reader.offset
        if not line:
            if entry:
                yield entry
            entry = {}
            continue
        name, equals, value = line.partition(b"=")
        if not equals:
            length = int.from_bytes(reader.take(_LENGTH_BYTES), "little")
            if length > MAX_OBJECT_BYTES:
                notes.stop(reader.offset, "a field is longer than any that a journal keeps")
                return
            value = reader.take(length)
            reader.take(1)  # its line break
        entry.setdefault(name.decode("ascii", "replace"), value.decode("utf-8", "replace"))
    if reader.is_cut:
        notes.stop(reader.offset, "it ends in the middle of an entry")
    elif entry:
        yield entry


class _Reader:
    """Lines and runs of bytes, from blocks."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self._buffer = b""
        self._at = 0
        self.offset = 0
        self.is_cut = False  # the input ended where more was to come

    def line(self) -> bytes | None:
        """Return the next line without its end; None at the end of the input."""
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            if len(self._buffer) - self._at > MAX_OBJECT_BYTES or not self._more():
                self.is_cut |= self._at < len(self._buffer)
                return None
        found = self._buffer[self._at : end]
        self._advance(len(found) + 1)
        return found

    def take(self, count: int) -> bytes:
        """Return so many bytes, fewer at the end of the input."""
        while len(self._buffer) - self._at < count:
            if not self._more():
                self.is_cut = True
                break
        found = self._buffer[self._at : self._at + count]
        self._advance(len(found))
        return found

    def _more(self) -> bool:
        block = next(self._blocks, None)
        if block is None:
            return False
        self._buffer, self._at = self._buffer[self._at :] + block, 0
        return True

    def _advance(self, count: int) -> None:
        self._at += count
        self.offset += count


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    return import_wall_events(path, sink, progress, FORMAT.name, parse_journal_export)


FORMAT = ImportFormat(
    "journal export", detects(looks_like_journal_export), peek_events(parse_journal_export), _import
)
