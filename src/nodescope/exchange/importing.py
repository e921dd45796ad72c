"""Files into an archive: in the order of their wall clocks, each whole or not at all.

A file is written to `ARCHIVE/.importing`, an archive of its own, and its
segments are moved over when all of them are sealed. `imports/FINGERPRINT.json`
remembers what was imported: it is written before the first segment is moved
(`placing`) and again after the last (`complete`). A crash leaves either the
hidden folder, or an import that is `placing`; the next import removes both. A
fingerprint that is `complete` is not imported again.

Segments are cut every two minutes of the capture's own clock and carry the
pair that places it on the wall clock. Retention takes nothing here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodescope.archive.description import read_description
from nodescope.archive.files import (
    make_directory,
    read_json,
    remove_directory,
    replace_json,
    sync_directory,
    translated,
)
from nodescope.archive.interning import Interner
from nodescope.archive.layout import (
    ARCHIVE_FILE,
    OPEN_DIRECTORY,
    SEALED_DIRECTORY,
    create_archive,
    list_segment_names,
    parse_sequence,
    read_archive_info,
)
from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.errors import ArchiveError, SourceError, UsageError, source_error
from nodescope.exchange.formats import (
    I64,
    Capture,
    Format,
    ImportReport,
    Names,
    Peek,
    SampleRows,
    find_format,
)

IMPORTS_DIRECTORY = "imports"
STAGING_DIRECTORY = ".importing"
SECOND_NS = 1_000_000_000
SEGMENT_NS = 120 * SECOND_NS
GAP_NS = 100_000_000  # between captures; less is how long `perf record` takes to start
MAX_TIME_NS = 1 << 62
_KEEP = Retention(age_ns=1 << 62, size_bytes=1 << 62)
# A file whose times are nonsense must not become a segment per row.
_LEAST_ROWS = 1000
_FLUSH_ROWS = 250_000
_WHOLE_BYTES = 16 << 20
_BLOCK_BYTES = 64 << 10
_BLOCKS = 128
_TIME_COLUMNS = {"cores": "time_ns", "events": "time_ns", "gaps": "from_ns"}
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Found:
    """A file to import, as far as a first look tells."""

    path: Path
    format: Format
    peek: Peek
    bytes: int


Shown = Callable[[Found, int], None]
"""Told how many bytes of which file are done."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import of several files came to."""

    reports: list[ImportReport]
    failures: list[SourceError]
    skipped: list[Path]  # in folders: what is no capture

    @property
    def is_whole(self) -> bool:
        """Whether everything that was asked for is now in the archive."""
        return not self.failures and all(each.stopped_at is None for each in self.reports)


def import_files(
    arguments: Sequence[Path],
    archive: Path,
    *,
    show: Shown = lambda found, done: None,
) -> Imported:
    """Import files, and the captures in folders, as one timeline."""
    found, skipped, damaged = find_captures(arguments)
    name = _one_node(found, archive)
    node: dict[str, object] = {"name": name or ""}
    kept = _archive_node(archive)
    imported = Imported([], damaged, skipped)
    writer = ArchiveWriter.open(
        archive, node=kept or node, clock=SystemClock(), tick_ns=1000, retention=_KEEP
    )
    with writer:
        _undo_incomplete(archive)
        end_ns: int | None = None  # of the capture before, on the wall
        for each in found:
            try:
                report, facts = _import_one(each, archive, end_ns, show)
            except SourceError as error:
                if len(arguments) == 1 and len(found) == 1:
                    raise
                imported.failures.append(error)
                continue
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
        for path in sorted(argument.iterdir()):
            if not path.is_file() or path.name.startswith("."):
                continue
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


def _look(path: Path, known: Format) -> Found:
    return Found(path, known, known.peek(path), path.stat().st_size)


def _archive_node(archive: Path) -> dict[str, object] | None:
    """Of which node the archive is; None if it holds nothing yet."""
    if not (archive / ARCHIVE_FILE).exists():
        return None
    if not list_segment_names(archive / SEALED_DIRECTORY) and not list_segment_names(
        archive / OPEN_DIRECTORY
    ):
        return None
    return read_archive_info(archive).node


def _one_node(found: Sequence[Found], archive: Path) -> str | None:
    """The node that all files are of, and the archive too; refuses two by name."""
    owner = (_archive_node(archive) or {}).get("name") or None
    named = [(str(each.path), each.peek.node) for each in found if each.peek.node]
    if owner is not None:
        named.insert(0, (f"archive {archive}", str(owner)))
    for where, name in named[1:]:
        if name != named[0][1]:
            raise UsageError(
                f"{where} is of node {name!r}, but {named[0][0]} is of node {named[0][1]!r}",
                hint="an archive is of one node: import each node's files into a folder of its own",
            )
    return named[0][1] if named else None


def fingerprint(path: Path) -> str:
    """What a file is recognised by: its size, and all of it or evenly spread blocks."""
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


def _import_one(
    found: Found, archive: Path, end_ns: int | None, show: Shown
) -> tuple[ImportReport, Mapping[str, object]]:
    mark = fingerprint(found.path)
    known = _read_import(archive, mark)
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
        _publish(staging, archive, mark, report)
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


# -- what was imported ---------------------------------------------------------


def _import_path(archive: Path, mark: str) -> Path:
    return archive / IMPORTS_DIRECTORY / f"{mark}.json"


def _read_import(archive: Path, mark: str) -> ImportReport | None:
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
    """What was imported into an archive, earliest first."""
    folder = archive / IMPORTS_DIRECTORY
    marks = sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []
    reports = [report for mark in marks if (report := _read_import(archive, mark)) is not None]
    return sorted(reports, key=lambda report: (report.wall_from_ns or 0, report.path))


def _publish(staging: Path, archive: Path, mark: str, report: ImportReport) -> None:
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


def _undo_incomplete(archive: Path) -> None:
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


# -- the sink ------------------------------------------------------------------


class _CaptureClock:
    """The clock of a capture, standing where the import has come to."""

    def __init__(self, capture: Capture) -> None:
        self.offset_ns = capture.clock.offset_ns
        self.now_ns = capture.clock.monotonic_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns + self.offset_ns


class _StagingWriter(ArchiveWriter):
    """A writer whose segments continue the numbers of another archive."""

    def number_after(self, sequence: int) -> None:
        self._sequence = sequence


class ImportSink:
    """Cuts the rows of one file into segments, and counts what the report tells."""

    def __init__(self, root: Path, boot_id: str, sequence: int, end_ns: int | None) -> None:
        self.node: Mapping[str, object] = {}
        self._root = root
        self._boot_id = boot_id
        self._first_sequence = sequence
        self._previous_end_ns = end_ns
        self._capture: Capture | None = None
        self._writer: _StagingWriter | None = None
        self._interner: Interner | None = None
        self._names: Names | None = None
        self._paths = _PathCounts()
        self._segment_ns = SEGMENT_NS
        self._segment_end_ns: int | None = None
        self._in_segment = 0
        self._unflushed = 0
        self._first_ns = MAX_TIME_NS
        self._last_ns = -1
        self._rows: dict[str, int] = {}
        self._lost = self._idle = self._impossible = 0
        self._frames = np.zeros(4, np.int64)

    # -- what importers call -------------------------------------------------

    def begin(self, capture: Capture) -> None:
        """Say where the file's times lie; once, before any row."""
        if self._capture is not None:
            raise UsageError("a capture begins once")
        self._capture = capture
        self.node = capture.node
        if capture.span_ns:
            parts = max(1, round(capture.span_ns / SEGMENT_NS))
            self._segment_ns = capture.span_ns // parts + SECOND_NS
        self._clock = _CaptureClock(capture)
        writer = _StagingWriter.open(
            self._root,
            node={"boot_id": self._boot_id},
            clock=self._clock,
            tick_ns=capture.tick_ns,
            retention=_KEEP,
        )
        assert isinstance(writer, _StagingWriter)
        self._writer = writer
        writer.number_after(self._first_sequence)

    def samples(self, rows: SampleRows, names: Names) -> None:
        """Add samples."""
        possible = (rows.time_ns >= 0) & (rows.time_ns < MAX_TIME_NS)
        if not possible.all():
            self._impossible += int(len(possible) - np.count_nonzero(possible))
            rows = _take_samples(rows, possible)
        if not len(rows.time_ns):
            return
        if self._names is not None and self._names.paths is not names.paths:
            self._seal()
            self._paths = _PathCounts()
        self._names = names
        for chosen in self._segments_of(rows.time_ns, "samples"):
            self._append_samples(rows if chosen.all() else _take_samples(rows, chosen), names)

    def append(self, table: str, columns: Mapping[str, Any]) -> None:
        """Add rows of `cores`, `events` or `gaps`, about in the order of their time."""
        times = np.asarray(columns[_TIME_COLUMNS[table]], np.int64)
        possible = (times >= 0) & (times < MAX_TIME_NS)
        if not possible.all():
            self._impossible += int(len(possible) - np.count_nonzero(possible))
            columns, times = _take(columns, possible), times[possible]
        if not len(times):
            return
        for chosen in self._segments_of(times, table):
            self._add(table, columns if chosen.all() else _take(columns, chosen), int(chosen.sum()))

    def lost(self, records: int) -> None:
        """Count records that the capture says it lost."""
        self._lost += records

    # -- the end -------------------------------------------------------------

    def close(self) -> None:
        """Seal what there is."""
        if self._writer is not None:
            try:
                self._seal()
            finally:
                self._writer.close()
                self._writer = None

    def complete(self, report: ImportReport) -> None:
        """Fill in what the sink has counted."""
        report.rows = {**report.rows, **self._rows}
        report.lost += self._lost
        report.idle += self._idle
        report.malformed += self._impossible
        report.gaps = self._rows.get("gaps", 0)
        _, unresolved_user, kernel, unresolved_kernel = self._frames.tolist()
        report.frames += int(self._frames.sum())
        report.kernel_frames += kernel + unresolved_kernel
        report.unresolved_user += unresolved_user
        report.unresolved_kernel += unresolved_kernel
        if self._capture is not None:
            report.clock_source = report.clock_source or self._capture.clock_source
            name = self._capture.node.get("name")
            report.node = report.node or (str(name) if name else None)
            if self._last_ns >= 0:
                offset = self._capture.clock.offset_ns
                report.wall_from_ns = self._first_ns + offset
                report.wall_to_ns = self._last_ns + offset

    # -- segments ------------------------------------------------------------

    def _segments_of(self, times: I64, table: str) -> Iterator[Bool]:
        """Which rows go into the present segment; and, after it, into the next, until all are."""
        if self._writer is None:
            raise UsageError("rows before the capture has begun")
        rest = np.ones(len(times), bool)
        while rest.any():
            first = int(times[rest].min())
            if self._segment_end_ns is None:
                self._start(first, table)
            elif first >= self._segment_end_ns and self._in_segment >= _LEAST_ROWS:
                self._seal()
                self._start(first, table)
            assert self._segment_end_ns is not None
            chosen = rest & (times < self._segment_end_ns)
            short = _LEAST_ROWS - self._in_segment - int(np.count_nonzero(chosen))
            if short > 0:  # too few rows for a segment: it takes later ones too
                later = np.flatnonzero(rest & ~chosen)
                chosen[later[np.argsort(times[later], kind="stable")[:short]]] = True
            self._in_segment += int(chosen.sum())
            self._first_ns = min(self._first_ns, int(times[chosen].min()))
            self._last_ns = max(self._last_ns, int(times[chosen].max()))
            yield chosen
            rest = rest & ~chosen

    def _start(self, first_ns: int, table: str) -> None:
        """A new segment, from that time on."""
        assert self._capture is not None
        self._segment_end_ns = first_ns + self._segment_ns
        self._clock.now_ns = first_ns  # the segment is named by it when it is first flushed
        self._heartbeat(first_ns)
        if self._previous_end_ns is not None and table == "samples":
            start_ns = self._previous_end_ns - self._capture.clock.offset_ns
            if first_ns - start_ns > GAP_NS:
                self._add(
                    "gaps",
                    {
                        "from_ns": [max(0, start_ns)],
                        "to_ns": [first_ns],
                        "source": ["samples"],
                        "cpu": [None],
                        "lost": [None],
                        "reason": ["between two captures"],
                    },
                    1,
                )
            self._previous_end_ns = None

    def _seal(self) -> None:
        if self._writer is None or self._segment_end_ns is None:
            return
        self._heartbeat(max(self._last_ns, self._clock.now_ns))
        self._writer.seal_segment()
        self._interner = None
        self._segment_end_ns = None
        self._in_segment = self._unflushed = 0

    def _heartbeat(self, time_ns: int) -> None:
        assert self._writer is not None
        assert self._capture is not None
        self._writer.append(
            "heartbeats",
            {
                "time_ns": [time_ns],
                "wall_ns": [time_ns + self._clock.offset_ns],
                "cpu_ns": [0],
                "rss_bytes": [0],
                "written_bytes": [0],
                "samples": [self._rows.get("samples", 0)],
                "lost": [self._lost],
                "late_ns": [0],
                "frequency_hz": [self._capture.frequency_hz],
            },
        )

    def _add(self, table: str, columns: Mapping[str, Any], count: int) -> None:
        assert self._writer is not None
        self._writer.append(table, columns)
        self._rows[table] = self._rows.get(table, 0) + count
        self._unflushed += count
        if self._unflushed >= _FLUSH_ROWS:
            self._writer.flush()
            self._unflushed = 0

    def _append_samples(self, rows: SampleRows, names: Names) -> None:
        assert self._writer is not None
        assert self._capture is not None
        if self._interner is None:
            self._interner = Interner(names.frames, names.paths, names.comms)
        profile = self._interner.intern(rows.comm, rows.kernel_mode, rows.user, rows.kernel)
        for table, columns in self._interner.take_new_rows().items():
            self._writer.append(table, columns)
        count = len(rows.time_ns)
        none: tuple[npt.NDArray[np.int32], list[str]] = (np.full(count, -1, np.int32), [])
        self._add(
            "samples",
            {
                "cpu": rows.cpu.astype(np.int16),
                "tick": rows.time_ns // self._capture.tick_ns,
                "pid": rows.pid.astype(np.int32),
                "thread": (rows.tid - rows.pid).astype(np.int32),
                "cgroup": none if rows.cgroup is None else rows.cgroup,
                "profile": profile.astype(np.int32),
            },
            count,
        )
        self._idle += int(np.count_nonzero(rows.pid == 0))
        self._frames += self._paths.count(names, rows.user, rows.kernel)


class _PathCounts:
    """How many frames each path has: user and kernel, with a name and without."""

    def __init__(self) -> None:
        self._counts = np.zeros((0, 4), np.int64)
        self._flags = np.zeros(0, np.int64)

    def count(self, names: Names, *numbers: I64) -> I64:
        """Frames of all samples, as (user, user unnamed, kernel, kernel unnamed)."""
        new_frames = names.frames[len(self._flags) :]
        flags = [2 * kernel + name.startswith(("+0x", "[")) for _, name, kernel in new_frames]
        self._flags = np.concatenate((self._flags, np.array(flags, np.int64)))
        new_paths = names.paths[len(self._counts) :]
        if new_paths:
            lengths = np.array([len(path) for path in new_paths], np.int64)
            frames = np.fromiter(chain.from_iterable(new_paths), np.int64, int(lengths.sum()))
            owner = np.repeat(np.arange(len(new_paths)), lengths)
            counts = np.bincount(owner * 4 + self._flags[frames], minlength=4 * len(new_paths))
            self._counts = np.concatenate((self._counts, counts.reshape(-1, 4)))
        total = np.zeros(4, np.int64)
        for number in numbers:
            uses = np.bincount(number, minlength=len(self._counts))
            total += uses @ self._counts
        return total


def _take_samples(rows: SampleRows, chosen: Bool) -> SampleRows:
    cgroup = rows.cgroup
    return SampleRows(
        rows.time_ns[chosen],
        rows.cpu[chosen],
        rows.pid[chosen],
        rows.tid[chosen],
        rows.comm[chosen],
        rows.kernel_mode[chosen],
        rows.user[chosen],
        rows.kernel[chosen],
        None if cgroup is None else (cgroup[0][chosen], cgroup[1]),
    )


def _take(columns: Mapping[str, Any], chosen: Bool) -> dict[str, Any]:
    taken: dict[str, Any] = {}
    for name, values in columns.items():
        if isinstance(values, tuple):
            taken[name] = (values[0][chosen], values[1])
        elif isinstance(values, np.ndarray):
            taken[name] = values[chosen]
        else:
            taken[name] = [one for one, wanted in zip(values, chosen, strict=True) if wanted]
    return taken
