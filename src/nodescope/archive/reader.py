"""The read side: needs no lock, and works while a recorder writes.

A recording is a folder, or a bundle of one (`nodescope.archive.bundle`): whoever
reads segments sees no difference.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from nodescope.archive.bundle import Bundle, open_bundle
from nodescope.archive.damage import Damage, check_file, find_damage, without_damaged
from nodescope.archive.description import (
    Description,
    Start,
    TableExtent,
    describe,
    wall_ns,
)
from nodescope.archive.description_file import parse_description, read_description, read_start
from nodescope.archive.files import SEGMENT_FILE, translated
from nodescope.archive.hours import Hour, read_hours
from nodescope.archive.layout import (
    ARCHIVE_FILE,
    OPEN_DIRECTORY,
    READING_HINT,
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
    column_names,
    conform,
    empty_table,
    former_names,
    schema_of,
    text_columns,
)
from nodescope.archive.streams import has_streams, stream_size
from nodescope.archive.thread_samples import is_by_thread, read_by_thread, stored_columns
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat, UsageError
from nodescope.records import OPEN_TABLES, SEALED_TABLES

MAX_ROWS = 1 << 26  # of one table; two minutes of a thousand cores are 12 million samples


class Segment:
    """One segment: described at once, its tables read when asked for."""

    is_open = False
    damage: Damage = ()

    def __init__(self, directory: Path, description: Description, damage: Damage = ()) -> None:
        self.directory = directory
        self.damage = damage
        self._description = without_damaged(description, damage) if damage else description

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
        known = column_names(table)
        names = list(known if columns is None else columns)
        if unknown := [name for name in names if name not in known]:
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
                content = file.read(stored_columns(names, known))
                return read_by_thread(content, names, self._read, path)
            wanted = [name if name in known else former.get(name) for name in names]
            stored = [name for name in wanted if name in known]
            content = file.read(stored)
            if stored != names:  # written by an older version
                content = conform(table, content, names)
            if content.column_names != names:
                content = content.select(names)
            schema = schema_of(table, tuple(names))
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

    def find_damage(self) -> Damage:
        """Return the tables whose file is missing or not as long as it was sealed."""
        folder = str(self.directory)  # joining Paths would be half the time of a listing
        return find_damage(
            self.description, lambda table, extent: check_file(f"{folder}/{table}.parquet", extent)
        )

    def without(self, damage: Damage) -> Segment:
        """Return the segment without these tables."""
        return Segment(self.directory, self.description, damage)

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
        self._bundle = bundle
        self._folder = folder
        damage = find_damage(description, self._check)
        if damage and len(damage) == len(description.tables):
            raise damage[0][1]  # nothing of it is left
        super().__init__(Path(bundle.where(folder)), description, damage)

    def _check(self, table: str, extent: TableExtent) -> None:
        name = self._member(table)
        member = self._bundle.members.get(name)
        if member is None:
            raise CorruptSegment(self._bundle.where(name), "missing")
        if member.bytes != extent.bytes:
            reason = f"{extent.bytes} bytes were sealed, but it ends"
            raise CorruptSegment(self._bundle.where(name), reason, member.bytes)
        if extent.rows > MAX_ROWS:
            raise CorruptSegment(self._bundle.where(name), f"{extent.rows} rows: not a segment")

    def _member(self, table: str) -> str:
        return f"{self._folder}/{table}.parquet"

    def _open(self, table: str, extent: TableExtent) -> Any:
        self._check(table, extent)
        return pa.BufferReader(self._bundle.read(self._member(table)))

    def find_damage(self) -> Damage:
        return ()  # the list of a bundle's members was checked when it was opened

    def read_files(self) -> dict[str, bytes]:
        return {table: self._bundle.read(self._member(table)) for table in self.description.tables}


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

    def find_damage(self) -> Damage:
        return ()  # its streams are read as far as they are whole

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
    with contextlib.suppress(KeyError):
        return ParquetTable(source, texts)
    known = ParquetTable(source, []).columns
    named = (name if name in known else former.get(name) for name in texts)
    return ParquetTable(source, [name for name in named if name in known])


@dataclass(frozen=True, slots=True)
class Listing:
    """The segments of an archive at one moment, in order, and what could not be read."""

    segments: list[Segment]
    damaged: list[ArchiveError]

    @property
    def lost(self) -> list[ArchiveError]:
        """Return what is wrong with segments of which nothing is left."""
        partly = {id(error) for segment in self.segments for _, error in segment.damage}
        return [error for error in self.damaged if id(error) not in partly]

    @property
    def emptiness(self) -> str:
        """Return why an archive without segments has none: nothing recorded, or all damaged."""
        if not self.damaged:
            return "nothing is recorded in it"
        more = f", and {len(self.damaged) - 1} more" if len(self.damaged) > 1 else ""
        return f"what is recorded in it cannot be read: {self.damaged[0]}{more}"

    def checked(self, segments: Iterable[Segment]) -> Listing:
        """Return it without those tables of `segments` whose files are missing or cut."""
        found: dict[str, Damage] = {}
        for segment in segments:
            if damage := segment.find_damage():
                found[segment.name] = damage
        if not found:
            return self
        kept, damaged = [], list(self.damaged)
        for segment in self.segments:
            damage = found.get(segment.name, ())
            if damage and not segment.directory.is_dir():
                continue  # retention removed it just now
            damaged += [error for _, error in damage]
            if len(damage) < len(segment.description.tables) or not damage:
                kept.append(segment.without(damage) if damage else segment)
        return Listing(kept, damaged)


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
            return cls(root, read_archive_info(root, READING_HINT))
        bundle = open_bundle(root)
        info = parse_archive_info(bundle.where(ARCHIVE_FILE), bundle.read_json(ARCHIVE_FILE))
        return cls(root, info, bundle)

    def segments(self) -> list[Segment]:
        """The readable segments, sealed and open, in the order they were recorded."""
        return self.listing().segments

    def listing(self, known: Mapping[str, Segment] | None = None) -> Listing:
        """All segments; a damaged table costs only itself, and what points into it.

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
                listing.damaged.extend(error for _, error in known[name].damage)
            else:
                self._add(listing, sealed / name, _describe_sealed)
        for name in open_names:
            if name not in sealed_names and has_streams(opened / name):
                self._add(listing, opened / name, self._load_open)
        listing.segments.sort(key=lambda segment: parse_sequence(segment.name) or 0)
        return listing

    def hours(self) -> list[Hour]:
        """Return the hours whose files are whole; a bundle has none."""
        if self.bundle is not None:
            return []
        return [hour for hour in read_hours(self.root) if hour.is_whole]

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
            segment = BundledSegment(bundle, name)
            listing.segments.append(segment)
            listing.damaged.extend(error for _, error in segment.damage)
        except (CorruptSegment, NewerFormat) as error:
            listing.damaged.append(error)
    return listing


def _describe_sealed(directory: Path) -> Segment:
    return Segment(directory, read_description(directory))
