"""Hours: the roll-ups of an hour's segments, added up in one folder.

::

    ARCHIVE/hours/NAME/     TABLE.parquet, and hour.json: the segments it is of

A flame graph of a week adds up five thousand segments of two minutes. Of the segments that
start within one hour of wall time and were rolled up, the writer adds up wide paths and functions
once that hour is over, path by path and without leaving any out: hours and segments give the same
sums. The tables are those of a segment, so that they are read in the same way.

An hour counts only where all its segments are there, and all of them are asked for. It
appears by one rename, complete and synced, and is removed before the first of its segments is.
A reader that does not know hours passes over them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.archive.description import Description, TableExtent
from nodescope.archive.files import (
    make_directory,
    open_private,
    read_json,
    sync_directory,
    translated,
    write_all,
    write_json,
)
from nodescope.archive.layout import FORMAT, HOURS_DIRECTORY, list_segment_names
from nodescope.errors import ArchiveError
from nodescope.quantities import HOUR_NS

if TYPE_CHECKING:  # reading and summing import pyarrow
    from nodescope.archive.reader import Segment
    from nodescope.archive.schema import ArrowTable

HOUR_FILE = "hour.json"
FEWEST = 4  # segments: fewer are read as fast one by one


@dataclass(frozen=True, slots=True)
class Hour:
    """The roll-ups of some segments, added up."""

    directory: Path
    members: tuple[str, ...]  # names of segments, in order
    tables: Mapping[str, TableExtent]

    @property
    def bytes(self) -> int:
        """Return the bytes that its tables take on disk."""
        return sum(extent.bytes for extent in self.tables.values())

    @property
    def is_whole(self) -> bool:
        """Decide whether all its files are there and as long as they were written."""
        try:
            return all(
                os.lstat(f"{self.directory}/{name}.parquet").st_size == extent.bytes
                for name, extent in self.tables.items()
            )
        except OSError:
            return False

    def describe(self, members: Sequence[Description]) -> Description:
        """Return the description with which it is read like a segment."""
        return replace(
            members[0],
            from_ns=min(each.from_ns for each in members),
            to_ns=max(each.to_ns for each in members),
            wall_from_ns=min(each.wall_from_ns for each in members),
            wall_to_ns=max(each.wall_to_ns for each in members),
            tables=self.tables,
            cost=None,
            gaps=(),
            wall_history_ns=None,
        )


def hour_of(wall_ns: int) -> int:
    """Return the number of the hour that a moment lies in."""
    return wall_ns // HOUR_NS


def read_hours(root: Path) -> list[Hour]:
    """Read the hours of an archive; one that makes no sense is as good as none."""
    try:
        names = list_segment_names(root / HOURS_DIRECTORY)
    except ArchiveError:
        return []
    hours = (_read(root / HOURS_DIRECTORY / name) for name in names)
    return [hour for hour in hours if hour is not None]


def _read(directory: Path) -> Hour | None:
    try:
        content = read_json(directory / HOUR_FILE)
    except (FileNotFoundError, ArchiveError):
        return None
    number, members, tables = (content.get(key) for key in ("format", "segments", "tables"))
    if not isinstance(number, int) or number > FORMAT:
        return None
    if not isinstance(members, list) or not all(isinstance(each, str) for each in members):
        return None
    if not isinstance(tables, dict) or not members:
        return None
    extents = {}
    for name, extent in tables.items():
        if not isinstance(extent, list) or [type(each) for each in extent] != [int, int]:
            return None
        extents[name] = TableExtent(*extent)
    return Hour(directory, tuple(members), extents)


def write_hour(root: Path, segments: Sequence[Segment]) -> Hour | None:
    """Add up the roll-ups of segments and put the hour in place; None if they do not add up."""
    from nodescope.archive.hour_sums import add_up

    tables = add_up(segments)
    if tables is None:
        return None
    make_directory(root / HOURS_DIRECTORY)
    target = root / HOURS_DIRECTORY / segments[0].name
    return _write(target, tuple(segment.name for segment in segments), tables)


def _write(target: Path, members: tuple[str, ...], tables: Mapping[str, ArrowTable]) -> Hour:
    from nodescope.archive.encoding import LEVEL_LARGE, encode_table

    temporary = target.with_name(f".{target.name}")
    try:
        with translated(temporary):
            if temporary.exists():
                shutil.rmtree(temporary)
        make_directory(temporary)
        extents = {}
        for name, table in tables.items():
            data = encode_table(name, table, LEVEL_LARGE)
            _write_file(temporary / f"{name}.parquet", memoryview(data))
            extents[name] = TableExtent(len(table), len(data))
        content = {name: [extent.rows, extent.bytes] for name, extent in extents.items()}
        write_json(
            temporary / HOUR_FILE, {"format": FORMAT, "segments": members, "tables": content}
        )
        with translated(target):
            sync_directory(temporary)
            temporary.rename(target)
            sync_directory(target.parent)
    except ArchiveError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return Hour(target, members, extents)


def _write_file(path: Path, data: memoryview) -> None:
    with translated(path):
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
