"""The read side: needs no lock, and works while a recorder writes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from nodescope.archive.description import (
    Description,
    Extent,
    Start,
    describe,
    read_description,
    read_start,
    wall_ns,
)
from nodescope.archive.layout import (
    OPEN_DIRECTORY,
    SEALED_DIRECTORY,
    ArchiveInfo,
    list_segment_names,
    parse_sequence,
    read_archive_info,
)
from nodescope.archive.schema import arrow_schema, empty_table, text_columns
from nodescope.archive.seal import read_opened
from nodescope.archive.streams import stream_size
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat, UsageError
from nodescope.records import OPEN_TABLES, SEALED_TABLES


class Segment:
    """One segment: described at once, its tables read when asked for."""

    is_open = False

    def __init__(self, directory: Path, description: Description) -> None:
        self.directory = directory
        self._description = description

    @property
    def description(self) -> Description:
        """What is known of it without opening a table."""
        return self._description

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def tick_ns(self) -> int:
        """What one tick of `samples.tick` lasts."""
        return self.description.start.tick_ns

    @property
    def wall_from_ns(self) -> int:
        return self.description.wall_from_ns

    @property
    def wall_to_ns(self) -> int:
        return self.description.wall_to_ns

    def wall_ns(self, monotonic_ns: Any) -> Any:
        """Place monotonic times (one, or an array) on the wall clock."""
        return wall_ns(self.description.clock, monotonic_ns)

    def read(self, table: str, columns: Sequence[str] | None = None) -> Any:
        """A table as `pyarrow.Table`; `text` columns come dictionary-encoded."""
        if table not in SEALED_TABLES:
            raise UsageError(f"no table {table!r} in a segment", hint=", ".join(SEALED_TABLES))
        names = list(arrow_schema(table).names if columns is None else columns)
        unknown = [name for name in names if name not in arrow_schema(table).names]
        if unknown:
            raise UsageError(f"no column {unknown[0]!r} in table {table}")
        return self._read(table, names)

    def _read(self, table: str, names: list[str]) -> Any:
        extent = self.description.tables.get(table)
        if extent is None:
            return empty_table(table).select(names)
        path = f"{self.directory}/{table}.parquet"
        check_file(path, extent)
        texts = [name for name in text_columns(table) if name in names]
        try:
            file = pa.parquet.ParquetFile(path, read_dictionary=texts, pre_buffer=False)
            content = file.read(columns=names, use_threads=False).select(names)
            schema = pa.schema([arrow_schema(table).field(name) for name in names])
            content = content.cast(schema)
        except FileNotFoundError:
            raise CorruptSegment(path, "missing") from None
        except (pa.ArrowException, OSError, KeyError) as error:
            raise CorruptSegment(path, str(error).splitlines()[0]) from error
        if len(content) != extent.rows:
            raise CorruptSegment(path, f"{len(content)} rows where {extent.rows} were sealed")
        return content


class OpenSegment(Segment):
    """The segment being written, computed in memory into the shape of a sealed one.

    It is read once, when first looked at, and stays as it was then. If its
    recorder seals it before that, it is read sealed.
    """

    is_open = True

    def __init__(self, directory: Path, start: Start, sealed_directory: Path) -> None:
        self.directory = directory
        self._start = start
        self._sealed_directory = sealed_directory

    @cached_property
    def _content(self) -> tuple[Description, dict[str, Any]] | Segment:
        sizes = {name: stream_size(self.directory, name) for name in OPEN_TABLES}
        tables = read_opened(self.directory, self._start)
        if not self.directory.is_dir():  # sealed under our eyes: what we read may lack files
            return Segment(self._sealed_directory, read_description(self._sealed_directory))
        sizes["stacks"] = sizes.pop("calls")
        extents = {
            name: Extent(len(table), sizes.get(name, 0))
            for name, table in tables.items()
            if len(table)
        }
        return describe(self._start, tables, extents), tables

    @property
    def description(self) -> Description:
        content = self._content
        return content.description if isinstance(content, Segment) else content[0]

    def _read(self, table: str, names: list[str]) -> Any:
        content = self._content
        if isinstance(content, Segment):
            return content._read(table, names)
        return content[1][table].select(names)


def check_file(path: str, extent: Extent) -> None:
    """Hold a file against what its segment says of it."""
    try:
        status = os.lstat(path)
    except OSError as error:
        raise CorruptSegment(path, "missing") from error
    if not stat.S_ISREG(status.st_mode):
        raise CorruptSegment(path, "not a regular file")
    if status.st_size != extent.bytes:
        reason = f"{extent.bytes} bytes were sealed, but it ends"
        raise CorruptSegment(path, reason, status.st_size)


@dataclass(frozen=True, slots=True)
class Listing:
    """The segments of an archive at one moment, in order, and what could not be read."""

    segments: list[Segment]
    damaged: list[ArchiveError]


class Archive:
    """A recording, for reading."""

    def __init__(self, root: Path, info: ArchiveInfo) -> None:
        self.root = root
        self.info = info

    @classmethod
    def open(cls, path: str | Path) -> Archive:
        """Open a recording; says by name if there is none, or none we can read."""
        root = Path(path)
        return cls(root, read_archive_info(root))

    def segments(self) -> list[Segment]:
        """The readable segments, sealed and open, in the order they were recorded."""
        return self.listing().segments

    def listing(self) -> Listing:
        """All segments; a damaged one costs only itself."""
        sealed, opened = self.root / SEALED_DIRECTORY, self.root / OPEN_DIRECTORY
        # Open ones first: one that is sealed in between is then seen twice, not never.
        open_names = list_segment_names(opened)
        sealed_names = list_segment_names(sealed)
        listing = Listing([], [])
        for name in sealed_names:
            self._add(listing, sealed / name, _load_sealed)
        for name in open_names:
            if name not in sealed_names:
                self._add(listing, opened / name, self._load_open)
        listing.segments.sort(key=lambda segment: parse_sequence(segment.name) or 0)
        return listing

    def _load_open(self, directory: Path) -> Segment:
        target = self.root / SEALED_DIRECTORY / directory.name
        try:
            return OpenSegment(directory, read_start(directory), target)
        except CorruptSegment:
            if target.is_dir():  # sealed since we listed it
                return _load_sealed(target)
            raise

    def _add(self, listing: Listing, directory: Path, load: Callable[[Path], Segment]) -> None:
        try:
            listing.segments.append(load(directory))
        except (CorruptSegment, NewerFormat) as error:
            if directory.is_dir():  # else retention or sealing took it just now
                listing.damaged.append(error)


def _load_sealed(directory: Path) -> Segment:
    description = read_description(directory)
    folder = str(directory)  # joining Paths would be half the time of a listing
    for table, extent in description.tables.items():
        check_file(f"{folder}/{table}.parquet", extent)
    return Segment(directory, description)
