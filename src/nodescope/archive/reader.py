"""The read side: needs no lock, and works while a recorder writes.

A recording is a folder, or a bundle of one (`nodescope.archive.bundle`): whoever
reads segments sees no difference.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from nodescope.archive.bundle import Bundle, open_bundle
from nodescope.archive.description import (
    Description,
    Start,
    TableExtent,
    describe,
    parse_description,
    read_description,
    read_start,
    wall_ns,
)
from nodescope.archive.files import SEGMENT_FILE, translated
from nodescope.archive.layout import (
    ARCHIVE_FILE,
    OPEN_DIRECTORY,
    SEALED_DIRECTORY,
    ArchiveInfo,
    list_segment_names,
    parse_archive_info,
    parse_sequence,
    read_archive_info,
)
from nodescope.archive.parquet import ParquetTable
from nodescope.archive.schema import (
    ArrowTable,
    arrow_schema,
    conform,
    empty_table,
    former_names,
    text_columns,
)
from nodescope.archive.thread_samples import is_by_thread, read_by_thread, stored_columns
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat, UsageError
from nodescope.records import OPEN_TABLES, SEALED_TABLES

MAX_ROWS = 1 << 26  # of one table; two minutes of a thousand cores are 12 million samples


class Segment:
    """One segment: described at once, its tables read when asked for."""

    is_open = False

    def __init__(self, directory: Path, description: Description) -> None:
        self.directory = directory
        self._description = description

    @property
    def description(self) -> Description:
        """Return the facts that are known without opening a table."""
        return self._description

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def tick_ns(self) -> int:
        """Return the length of one tick of `samples.tick`."""
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
        path = self.where(table)
        source = self._open(table, extent)
        former = former_names(table)
        texts = [name for name in text_columns(table) if name in names]
        try:
            file = _open_parquet(source, texts, former)
            if file.rows != extent.rows:
                raise CorruptSegment(path, f"{file.rows} rows where {extent.rows} were sealed")
            known = file.columns
            if table == "samples" and is_by_thread(known):
                content = file.read(stored_columns(names))
                return read_by_thread(content, names, self._read, path)
            wanted = [name if name in known else former.get(name) for name in names]
            stored = [name for name in wanted if name in known]
            content = file.read(stored)
            if stored != names:  # written by an older version
                content = conform(table, content, names)
            content = content.select(names)
            schema = pa.schema([arrow_schema(table).field(name) for name in names])
            if content.schema.types != schema.types:  # casting costs the import of pyarrow.compute
                content = content.cast(schema)
        except FileNotFoundError:
            raise CorruptSegment(path, "missing") from None
        except (pa.ArrowException, OSError, KeyError) as error:
            raise CorruptSegment(path, str(error).splitlines()[0]) from error
        if len(content) != extent.rows:
            raise CorruptSegment(path, f"{len(content)} rows where {extent.rows} were sealed")
        return content

    def where(self, table: str) -> str:
        """Return where a table is kept, for messages."""
        return f"{self.directory}/{table}.parquet"

    def check_files(self) -> None:
        """Raise `CorruptSegment` if a table's file is missing or not as long as it was sealed."""
        folder = str(self.directory)  # joining Paths would be half the time of a listing
        for table, extent in self.description.tables.items():
            check_file(f"{folder}/{table}.parquet", extent)

    def _open(self, table: str, extent: TableExtent) -> Any:
        """What Parquet reads the table from: a path, or bytes."""
        path = self.where(table)
        check_file(path, extent)
        return path

    def read_files(self) -> dict[str, bytes]:
        """The tables as they lie on disk, to be copied."""
        files = {}
        for table, extent in self.description.tables.items():
            path = self.directory / f"{table}.parquet"
            check_file(str(path), extent)
            with translated(path):
                files[table] = path.read_bytes()
            if len(files[table]) != extent.bytes:
                raise CorruptSegment(path, f"{extent.bytes} bytes were sealed, but it changed")
        return files

    @property
    def description_bytes(self) -> int:
        """What its `segment.json` takes on disk; 0 if retention took it just now."""
        try:
            return os.lstat(f"{self.directory}/{SEGMENT_FILE}").st_size
        except OSError:
            return 0


class BundledSegment(Segment):
    """A segment in a bundle; `directory` is only what messages call it."""

    def __init__(self, bundle: Bundle, name: str) -> None:
        folder = f"{SEALED_DIRECTORY}/{name}"
        member = f"{folder}/{SEGMENT_FILE}"
        where = bundle.where(member)
        description = parse_description(where, name, bundle.read_json(member))
        super().__init__(Path(bundle.where(folder)), description)
        self._bundle = bundle
        self._folder = folder
        for table, extent in description.tables.items():
            self._check(table, extent)

    def _check(self, table: str, extent: TableExtent) -> None:
        name = f"{self._folder}/{table}.parquet"
        member = self._bundle.members.get(name)
        if member is None:
            raise CorruptSegment(self._bundle.where(name), "missing")
        if member.bytes != extent.bytes:
            reason = f"{extent.bytes} bytes were sealed, but it ends"
            raise CorruptSegment(self._bundle.where(name), reason, member.bytes)
        if extent.rows > MAX_ROWS:
            raise CorruptSegment(self._bundle.where(name), f"{extent.rows} rows: not a segment")

    def _open(self, table: str, extent: TableExtent) -> Any:
        self._check(table, extent)
        return pa.BufferReader(self._bundle.read(f"{self._folder}/{table}.parquet"))

    def check_files(self) -> None:
        """Do nothing: the list of a bundle's members was checked when it was opened."""

    def read_files(self) -> dict[str, bytes]:
        return {
            table: self._bundle.read(f"{self._folder}/{table}.parquet")
            for table in self.description.tables
        }


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
    def _content(self) -> tuple[Description, dict[str, ArrowTable]] | Segment:
        # Sealing is a tenth of what starting a command costs: most read sealed segments only.
        from nodescope.archive.seal import read_opened
        from nodescope.archive.streams import stream_size

        sizes = {name: stream_size(self.directory, name) for name in OPEN_TABLES}
        tables = read_opened(self.directory, self._start)
        if not self.directory.is_dir():  # sealed under our eyes: what we read may lack files
            return Segment(self._sealed_directory, read_description(self._sealed_directory))
        extents = {
            name: TableExtent(len(table), sizes.get(name, 0))
            for name, table in tables.items()
            if len(table)
        }
        return describe(self._start, tables, extents), tables

    def check_files(self) -> None:
        """Do nothing: the end of a stream that is being written is found by reading it."""

    @property
    def description(self) -> Description:
        content = self._content
        return content.description if isinstance(content, Segment) else content[0]

    def _read(self, table: str, names: list[str]) -> Any:
        content = self._content
        if isinstance(content, Segment):
            return content._read(table, names)
        return content[1][table].select(names)


def _open_parquet(source: Any, texts: list[str], former: Mapping[str, str]) -> ParquetTable:
    """Open a table, with those columns as dictionaries; an older version may lack some."""
    for names in (texts, [former.get(name, name) for name in texts], []):
        with contextlib.suppress(KeyError):
            return ParquetTable(source, names)
    raise KeyError("no such columns")


def check_file(path: str, extent: TableExtent) -> None:
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

    def checked(self, segments: Iterable[Segment]) -> Listing:
        """Return it without those of `segments` whose files are missing or cut."""
        broken: dict[str, CorruptSegment] = {}
        for segment in segments:
            try:
                segment.check_files()
            except CorruptSegment as error:
                broken[segment.name] = error
        if not broken:
            return self
        lost = [segment for segment in self.segments if segment.name in broken]
        # One whose directory is gone was removed by retention just now.
        damaged = [broken[segment.name] for segment in lost if segment.directory.is_dir()]
        kept = [segment for segment in self.segments if segment.name not in broken]
        return Listing(kept, [*self.damaged, *damaged])


class Archive:
    """A recording, for reading."""

    def __init__(self, root: Path, info: ArchiveInfo, bundle: Bundle | None = None) -> None:
        self.root = root
        self.info = info
        self.bundle = bundle  # None: a folder

    @classmethod
    def open(cls, path: str | Path) -> Archive:
        """Open a recording; says by name if there is none, or none we can read."""
        root = Path(path)
        with translated(root):  # we may not be allowed even to look there
            folder = root.is_dir() or not root.exists()
        if folder:
            return cls(root, read_archive_info(root))
        bundle = open_bundle(root)
        info = parse_archive_info(bundle.where(ARCHIVE_FILE), bundle.read_json(ARCHIVE_FILE))
        return cls(root, info, bundle)

    def segments(self) -> list[Segment]:
        """The readable segments, sealed and open, in the order they were recorded."""
        return self.listing().segments

    def listing(self, known: Mapping[str, Segment] | None = None) -> Listing:
        """All segments; a damaged one costs only itself.

        `known` are sealed ones of an earlier listing, by name: sealed means for ever,
        so they are not looked at again.
        """
        listing = self.described(known)
        return listing.checked([s for s in listing.segments if s.name not in (known or {})])

    def described(self, known: Mapping[str, Segment] | None = None) -> Listing:
        """All segments by their descriptions alone: files of theirs may be missing or cut."""
        if self.bundle is not None:
            return _list_bundle(self.bundle)
        sealed, opened = self.root / SEALED_DIRECTORY, self.root / OPEN_DIRECTORY
        # Open ones first: one that is sealed in between is then seen twice, not never.
        open_names = list_segment_names(opened)
        sealed_names = list_segment_names(sealed)
        listing = Listing([], [])
        for name in sealed_names:
            if known is not None and name in known:
                listing.segments.append(known[name])
            else:
                self._add(listing, sealed / name, _describe_sealed)
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
                return _describe_sealed(target)
            raise

    def _add(self, listing: Listing, directory: Path, load: Callable[[Path], Segment]) -> None:
        try:
            listing.segments.append(load(directory))
        except (CorruptSegment, NewerFormat) as error:
            if directory.is_dir():  # else retention or sealing took it just now
                listing.damaged.append(error)


def _list_bundle(bundle: Bundle) -> Listing:
    listing = Listing([], [])
    for name in bundle.segment_names:
        try:
            listing.segments.append(BundledSegment(bundle, name))
        except (CorruptSegment, NewerFormat) as error:
            listing.damaged.append(error)
    return listing


def _describe_sealed(directory: Path) -> Segment:
    return Segment(directory, read_description(directory))
