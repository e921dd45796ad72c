"""Sealing on disk: an open directory becomes a sealed one, or stays as it was.

The sealed directory is built beside its place under a name with a dot, every
file synced, and then renamed into `segments/`; only when that is on disk is
the open directory removed. Killed anywhere in between, the next writer finds
either the open segment whole (and seals it again) or both (and only removes
the open one).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodescope.archive.description import Description, Start, TableExtent, describe
from nodescope.archive.description_file import (
    description_to_json,
    read_description,
    read_start,
)
from nodescope.archive.earlier_formats import read_stacks_of_calls
from nodescope.archive.encoding import encode_tables
from nodescope.archive.files import (
    SEGMENT_FILE,
    make_directory,
    open_private,
    remove_directory,
    sync_directory,
    translated,
    write_all,
    write_json,
)
from nodescope.archive.layout import SEALED_DIRECTORY
from nodescope.archive.memory import give_memory_back
from nodescope.archive.schema import ArrowTable
from nodescope.archive.sealed_tables import derive_sealed
from nodescope.archive.streams import read_stream, stream_size
from nodescope.errors import ArchiveError
from nodescope.records import OPEN_TABLES


def read_opened(directory: Path, start: Start) -> dict[str, ArrowTable]:
    """The tables of an open segment in the shape they will have once sealed."""
    opened = {name: read_stream(directory, name) for name in OPEN_TABLES}
    if stream_size(directory, "calls"):
        calls = read_stream(directory, "calls")
        opened["stacks"], opened["profile"] = read_stacks_of_calls(calls, opened["profile"])
    return derive_sealed(opened, start.tick_ns)


def seal(directory: Path, root: Path) -> Description | None:
    """Seal the open segment in `directory`; None if there was nothing in it."""
    target = root / SEALED_DIRECTORY / directory.name
    if target.is_dir():  # killed between the rename and the removal
        remove_directory(directory)
        return read_description(target)
    start = read_start(directory)
    tables = read_opened(directory, start)
    description = None
    if any(len(table) for table in tables.values()):
        description = _write_sealed(target, start, tables)
    del tables
    remove_directory(directory)
    give_memory_back()
    return description


def _write_sealed(target: Path, start: Start, tables: Mapping[str, ArrowTable]) -> Description:
    temporary = target.with_name(f".{target.name}")
    try:
        with translated(temporary):
            if temporary.exists():
                shutil.rmtree(temporary)
        make_directory(temporary)
        extents = {
            each.name: TableExtent(
                each.rows, _write_file(temporary / f"{each.name}.parquet", each.data)
            )
            for each in encode_tables(tables)
        }
        # Once all are written: the first sync then takes along most of what the others need.
        for name in extents:
            _sync_file(temporary / f"{name}.parquet")
        description = describe(start, tables, extents)
        write_json(temporary / SEGMENT_FILE, description_to_json(description))
        with translated(target):
            sync_directory(temporary)
            temporary.rename(target)
            sync_directory(target.parent)
    except ArchiveError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return description


def _write_file(path: Path, data: Any) -> int:
    with translated(path):
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(descriptor, memoryview(data))
        finally:
            os.close(descriptor)
    return len(data)


def _sync_file(path: Path) -> None:
    with translated(path):
        descriptor = open_private(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
