"""Remember imported files, so that importing the same file again changes nothing.

`imports/FINGERPRINT.json` remembers a file: it is written before its first
segment is moved into the archive (`placing`) and again after the last
(`complete`). A crash leaves either a hidden folder, in which the segments were
being made, or an import that is `placing`; `undo_incomplete` removes both.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import asdict, fields
from pathlib import Path

from nodescope.archive.description_file import read_description
from nodescope.archive.files import (
    make_directory,
    read_json,
    remove_directory,
    replace_json,
    sync_directory,
    translated,
)
from nodescope.archive.layout import SEALED_DIRECTORY, list_segment_names, parse_sequence
from nodescope.errors import ArchiveError, source_error
from nodescope.ingest.sink import ImportReport

IMPORTS_DIRECTORY = "imports"
STAGING_DIRECTORY = ".importing"
_WHOLE_BYTES = 16 << 20
_BLOCK_BYTES = 64 << 10
_BLOCKS = 128


def fingerprint(path: Path) -> str:
    """Return a file's fingerprint: its size, and all of it or evenly spread blocks."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
            if size <= _WHOLE_BYTES:
                digest.update(file.read())
            else:
                for block in range(_BLOCKS):
                    file.seek((size - _BLOCK_BYTES) * block // (_BLOCKS - 1))
                    digest.update(file.read(_BLOCK_BYTES))
    except OSError as error:
        raise source_error(path, error) from error
    return digest.hexdigest()


def _import_path(archive: Path, mark: str) -> Path:
    return archive / IMPORTS_DIRECTORY / f"{mark}.json"


def read_import(archive: Path, mark: str) -> ImportReport | None:
    """The report of the import of a file of that fingerprint, if there was one."""
    try:
        content = read_json(_import_path(archive, mark))
    except FileNotFoundError:
        return None
    report = content.get("report")
    if content.get("state") != "complete" or not isinstance(report, dict):
        return None
    known = {field.name for field in fields(ImportReport)}
    try:
        return ImportReport(**{key: value for key, value in report.items() if key in known})
    except TypeError as error:
        raise ArchiveError(_import_path(archive, mark), f"not the report of an import: {error}") \
            from error  # fmt: skip


def read_imports(archive: Path) -> list[ImportReport]:
    """Read the imports of an archive, earliest first."""
    folder = archive / IMPORTS_DIRECTORY
    marks = sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []
    reports = [report for mark in marks if (report := read_import(archive, mark)) is not None]
    return sorted(reports, key=lambda report: (report.wall_from_ns or 0, report.path))


def publish(staging: Path, archive: Path, mark: str, report: ImportReport) -> None:
    """Move the sealed segments of `staging` into the archive, and remember it."""
    names = list_segment_names(staging / SEALED_DIRECTORY)
    make_directory(archive / IMPORTS_DIRECTORY)
    path = _import_path(archive, mark)
    content = {"state": "placing", "segments": names, "report": asdict(report)}
    replace_json(path, content)
    with translated(archive):
        for name in names:
            (staging / SEALED_DIRECTORY / name).rename(archive / SEALED_DIRECTORY / name)
        sync_directory(archive / SEALED_DIRECTORY)
    replace_json(path, content | {"state": "complete"})


def undo_incomplete(archive: Path) -> None:
    """Remove what a crash left of imports."""
    shutil.rmtree(archive / STAGING_DIRECTORY, ignore_errors=True)
    folder = archive / IMPORTS_DIRECTORY
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            content = read_json(path)
        except ArchiveError:
            continue  # not ours, or damaged: the segments it speaks of are whole
        names = content.get("segments")
        if content.get("state") != "placing" or not isinstance(names, list):
            continue
        for name in names:
            directory = archive / SEALED_DIRECTORY / str(name)
            if parse_sequence(str(name)) is None or not directory.is_dir():
                continue
            if read_description(directory).start.boot_id == f"import-{path.stem[:16]}":
                remove_directory(directory)
        with translated(path):
            path.unlink()
