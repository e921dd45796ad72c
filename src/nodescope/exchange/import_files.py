"""Files into an archive: in the order of their wall clocks, each whole or not at all.

A file is written to `ARCHIVE/.importing`, an archive of its own
(`import_sink`), and its segments are moved over when all of them are sealed.
`import_journal` remembers it; a file that is remembered is not imported again.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nodescope.archive.layout import (
    ARCHIVE_FILE,
    OPEN_DIRECTORY,
    SEALED_DIRECTORY,
    create_archive,
    list_segment_names,
    parse_sequence,
    read_archive_info,
)
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.errors import SourceError, UsageError
from nodescope.exchange.import_formats import ImportFormat, Peek, find_format
from nodescope.exchange.imported_files import (
    STAGING_DIRECTORY,
    fingerprint,
    publish,
    read_import,
    undo_incomplete,
)
from nodescope.exchange.log_trees import find_logs
from nodescope.ingest.import_sink import KEEP, ImportSink
from nodescope.ingest.sink import ImportReport


@dataclass(frozen=True, slots=True)
class Found:
    """A file to import, as far as a first look tells."""

    path: Path
    format: ImportFormat
    peek: Peek
    bytes: int


Shown = Callable[[Found, int], None]
"""Told how many bytes of which file are done."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The outcome of importing several files."""

    reports: list[ImportReport]
    failures: list[SourceError]
    skipped: list[Path]  # in folders: what is no capture

    @property
    def is_whole(self) -> bool:
        """Return whether everything asked for is now in the archive."""
        return not self.failures and all(each.stopped_at is None for each in self.reports)


def import_files(
    arguments: Sequence[Path],
    archive: Path,
    *,
    node_name: str | None = None,
    show: Shown = lambda found, done: None,
) -> Imported:
    """Import files, and the captures in folders, as one timeline."""
    found, skipped, damaged = find_captures(arguments)
    name = _one_node(found, archive, node_name)
    node: dict[str, object] = {"name": name or ""}
    kept = _archive_node(archive)
    imported = Imported([], damaged, skipped)
    writer = ArchiveWriter.open(
        archive, node=kept or node, clock=SystemClock(), tick_ns=1000, retention=KEEP
    )
    with writer:
        undo_incomplete(archive)
        end_ns: int | None = None  # of the capture before, on the wall
        for each in found:
            try:
                report, facts = _import_one(each, archive, end_ns, show)
            except SourceError as error:
                if len(arguments) == 1 and len(found) == 1:
                    raise
                imported.failures.append(error)
                continue
            report.node = report.node or node_name
            imported.reports.append(report)
            if report.samples and report.wall_to_ns is not None:
                end_ns = max(end_ns or 0, report.wall_to_ns)
            if facts and not (kept or {}).get("name"):
                kept = {**node, **{key: value for key, value in facts.items() if value}}
                create_archive(archive, 0, kept)
    return imported


def find_captures(
    arguments: Sequence[Path],
) -> tuple[list[Found], list[Path], list[SourceError]]:
    """The files to import, earliest first; and what folders hold besides: others, and damage."""
    found: list[Found] = []
    skipped: list[Path] = []
    damaged: list[SourceError] = []
    for argument in arguments:
        if not argument.is_dir():
            found.append(_look(argument, find_format(argument)))
            continue
        before = len(found)
        tree = find_logs(argument)
        if tree is not None:
            skipped += tree.left
        for path in _files_of(argument) if tree is None else tree.chosen:
            try:
                known = find_format(path)
            except SourceError:
                skipped.append(path)
                continue
            try:
                found.append(_look(path, known))
            except SourceError as error:
                damaged.append(error)
        if len(found) == before:
            raise SourceError(
                argument, "no capture in this folder", hint="give files, or another folder"
            )
    unknown = 1 << 63
    found.sort(key=lambda one: (unknown if (at := one.peek.wall_from_ns) is None else at, one.path))
    return found, skipped, damaged


def _files_of(folder: Path) -> Iterator[Path]:
    return (
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    )


def _look(path: Path, known: ImportFormat) -> Found:
    return Found(path, known, known.peek(path), path.stat().st_size)


def _archive_node(archive: Path) -> dict[str, object] | None:
    """Return the node of the archive; None if it holds nothing yet."""
    if not (archive / ARCHIVE_FILE).exists():
        return None
    if not list_segment_names(archive / SEALED_DIRECTORY) and not list_segment_names(
        archive / OPEN_DIRECTORY
    ):
        return None
    return read_archive_info(archive).node


def _one_node(found: Sequence[Found], archive: Path, node_name: str | None) -> str | None:
    """Return the node that all files are of, and the archive too; refuse two of them.

    `node_name` is what the user says of files that do not name theirs.
    """
    owner = (_archive_node(archive) or {}).get("name") or None
    named = [(str(each.path), each.peek.node) for each in found if each.peek.node]
    if node_name is not None:
        named.insert(0, ("what was given with --node", node_name))
    if owner is not None:
        named.insert(0, (f"archive {archive}", str(owner)))
        _refuse_unnamed(found, archive, str(owner), node_name)
    for where, name in named[1:]:
        if name != named[0][1]:
            raise UsageError(
                f"{where} is of node {name!r}, but {named[0][0]} is of node {named[0][1]!r}",
                hint="an archive is of one node: import each node's files into a folder of its own",
            )
    return named[0][1] if named else None


def _refuse_unnamed(
    found: Sequence[Found], archive: Path, owner: str, node_name: str | None
) -> None:
    """Refuse to put a file that names no node into a node's recording unless the user names it."""
    for each in found:
        known = each.peek.node is not None or node_name is not None
        if not known and read_import(archive, fingerprint(each.path)) is None:
            raise UsageError(
                f"{each.path} does not say of which node it is, and {archive} is the recording "
                f"of node {owner!r}",
                hint=f"if it is of that node, add `--node {shlex.quote(owner)}`; else import it "
                "into a folder of its own with --archive",
            )


def _import_one(
    found: Found, archive: Path, end_ns: int | None, show: Shown
) -> tuple[ImportReport, Mapping[str, object]]:
    mark = fingerprint(found.path)
    known = read_import(archive, mark)
    if known is not None:
        known.path = str(found.path)
        known.already_imported = True
        return known, {}
    with _staging(archive) as staging:
        sink = ImportSink(staging, f"import-{mark[:16]}", _next_sequence(archive), end_ns)
        try:
            report = found.format.import_(found.path, sink, lambda done: show(found, done))
        finally:
            sink.close()
        sink.complete(report)
        publish(staging, archive, mark, report)
    return report, sink.node


@contextmanager
def _staging(archive: Path) -> Iterator[Path]:
    staging = archive / STAGING_DIRECTORY
    shutil.rmtree(staging, ignore_errors=True)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _next_sequence(archive: Path) -> int:
    names = list_segment_names(archive / SEALED_DIRECTORY)
    names += list_segment_names(archive / OPEN_DIRECTORY)
    return max((parse_sequence(name) or 0 for name in names), default=0)
