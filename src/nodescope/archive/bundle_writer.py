"""Writing a bundle: whole segments as they are, those at the edges cut and sealed again.

The ids of wide paths and functions are left out: hashes do not compress and are a twelfth of a
segment. Readers make them anew, which takes some milliseconds a segment; a folder stores them, as
the views of a week add up thousands of segments. Small roll-ups of a large segment are
compressed harder than the recorder has time for.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.archive.bundle import BUNDLE_FILE, BUNDLE_FORMAT, digest
from nodescope.archive.damage import without_damaged
from nodescope.archive.description import TableExtent, describe
from nodescope.archive.description_file import description_to_json
from nodescope.archive.encoding import (
    WHERE_KNOWN,
    choose_level,
    encode_table,
    encode_tables,
)
from nodescope.archive.files import SEGMENT_FILE, translated
from nodescope.archive.layout import ARCHIVE_FILE, FORMAT, SEALED_DIRECTORY
from nodescope.archive.reader import Archive, Segment
from nodescope.archive.schema import (
    ArrowTable,
    arrow_schema,
    combine,
    make_text,
    take_rows,
    text_indices,
)
from nodescope.archive.sealed_tables import derive_sealed
from nodescope.errors import ArchiveError, UsageError
from nodescope.records import NODE_TABLES, SEALED_TABLES, WIDE_PATHS
from nodescope.records.view import View
from nodescope.records.view_forms import render_command

_EPOCH = (1980, 1, 1, 0, 0, 0)  # of zip: the same range bundled twice is the same bytes
_DERIVED = (
    *("seconds", "trunk", "functions", "features", "feature_seconds"),
    *(table.name for table in WIDE_PATHS),
)
_ROLL_UPS = ("threads", *_DERIVED)  # made anew
_PLACED = {"samples": "tick", "cores": "time_ns", "heartbeats": "time_ns", "events": "time_ns"}


@dataclass
class Bundled:
    """The report of a written bundle."""

    path: Path
    from_ns: int
    to_ns: int
    bytes: int = 0
    samples: int = 0
    segments: int = 0
    cut: int = 0  # of them, those that reached beyond the range
    damaged: list[str] = field(default_factory=list)  # left out


def write_bundle(
    archive: Archive,
    path: Path,
    from_ns: int,
    to_ns: int,
    created_ns: int,
    *,
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Bundled:
    """Write what was recorded from `from_ns` until before `to_ns`; holds one segment at a time."""
    listing = archive.listing()
    chosen = [
        segment
        for segment in listing.segments
        if segment.wall_to_ns >= from_ns and segment.wall_from_ns < to_ns
    ]
    if not chosen:
        status = render_command(View("status"), archive.root.absolute())
        hint = f"`{status}` shows what is there"
        if listing.damaged:
            reason = f"nothing of that time can be read; damaged: {listing.damaged[0]}"
            raise ArchiveError(archive.root, reason, hint=hint)
        raise UsageError("nothing was recorded in that time", hint=hint)
    report = Bundled(path, from_ns, to_ns, damaged=[str(error) for error in listing.damaged])
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    members: dict[str, list[object]] = {}
    try:
        with translated(path), _create(temporary) as target, zipfile.ZipFile(target, "w") as file:
            info = archive.info
            facts = {"format": info.format, "created": info.created_ns, "node": info.node}
            _put(file, members, ARCHIVE_FILE, _json(facts))
            for done, segment in enumerate(chosen):
                show(done, len(chosen))
                _put_segment(file, members, segment, report)
            index = {
                "bundle": BUNDLE_FORMAT,
                "format": FORMAT,
                "from": from_ns,
                "to": to_ns,
                "created": created_ns,
                "members": members,
            }
            file.writestr(zipfile.ZipInfo(BUNDLE_FILE, _EPOCH), _json(index))
        with translated(path):
            report.bytes = temporary.stat().st_size
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    show(len(chosen), len(chosen))
    return report


def _create(path: Path) -> Any:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    return os.fdopen(descriptor, "w+b")


def _json(content: Mapping[str, object]) -> bytes:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="backslashreplace")


def _put(
    file: zipfile.ZipFile, members: dict[str, list[object]], name: str, data: bytes | memoryview
) -> None:
    file.writestr(zipfile.ZipInfo(name, _EPOCH), data)  # stored, as ZipInfo is by default
    members[name] = [len(data), digest(data)]


def _put_segment(
    file: zipfile.ZipFile, members: dict[str, list[object]], segment: Segment, report: Bundled
) -> None:
    folder = f"{SEALED_DIRECTORY}/{segment.name}"
    inside = report.from_ns <= segment.wall_from_ns and segment.wall_to_ns < report.to_ns
    if inside and not segment.is_open:
        content: dict[str, bytes | memoryview] = {**segment.read_files()}
        description = segment.description
        content |= _encode_smaller(segment)
        extents = {
            name: extent._replace(bytes=len(content[name]))
            for name, extent in description.tables.items()
        }
        description = replace(description, tables=extents)
    else:
        tables = cut_tables(segment, report.from_ns, report.to_ns)
        if not any(len(table) for table in tables.values()):
            return
        encoded = list(encode_tables({name: _without_ids(name, tables[name]) for name in tables}))
        content = {each.name: memoryview(each.data) for each in encoded}
        extents = {each.name: TableExtent(each.rows, len(each.data)) for each in encoded}
        start = segment.description.start
        if segment.wall_from_ns < report.from_ns:
            start = replace(start, first_of_run=False)
        description = describe(start, tables, extents, segment.description.clock)
        if segment.damage:
            description = without_damaged(description, segment.damage)
        report.cut += not inside
    _put(file, members, f"{folder}/{SEGMENT_FILE}", _json(description_to_json(description)))
    for name, data in content.items():
        _put(file, members, f"{folder}/{name}.parquet", data)
    report.samples += description.samples
    report.segments += 1


def cut_tables(segment: Segment, from_ns: int, to_ns: int) -> dict[str, ArrowTable]:
    """The tables of a segment with only what lies between two wall times.

    Counters need a reading on either side, so one core reading per core and one
    heartbeat before the range stay, and one core reading after it.
    """
    opened = {name: segment.read(name) for name in SEALED_TABLES if name not in _ROLL_UPS}
    for name, column in _PLACED.items():
        unit = segment.tick_ns if name == "samples" else 1
        times = segment.wall_ns(opened[name].column(column).to_numpy() * unit)
        inside = (times >= from_ns) & (times < to_ns)
        if name == "cores":
            inside = _with_neighbours(opened[name].column("cpu").to_numpy(), inside)
        elif name == "heartbeats":
            before = np.flatnonzero(times < from_ns)
            inside[before[-1:]] = True
        if not inside.all():
            opened[name] = _take(name, opened[name], np.flatnonzero(inside))
    for table in NODE_TABLES:
        # What is only said when it changes stays from the segment's start on.
        times = segment.wall_ns(opened[table.name].column("time_ns").to_numpy())
        inside = times < to_ns
        if table.name == "kernel_log":
            inside &= times >= from_ns
        if not inside.all():
            opened[table.name] = take_rows(opened[table.name], np.flatnonzero(inside))
    gaps = opened["gaps"]
    if len(gaps):
        starts = segment.wall_ns(gaps.column("from_ns").to_numpy())
        ends = segment.wall_ns(gaps.column("to_ns").to_numpy())
        opened["gaps"] = take_rows(gaps, np.flatnonzero((ends >= from_ns) & (starts < to_ns)))
    return derive_sealed(opened, segment.tick_ns)


def _encode_smaller(segment: Segment) -> dict[str, memoryview]:
    """Encode the roll-ups of a segment anew: without ids, and those of few rows harder."""
    tables = segment.description.tables
    return {
        name: memoryview(
            encode_table(name, _without_ids(name, segment.read(name)), choose_level(extent.rows))
        )
        for name, extent in tables.items()
        if name in _DERIVED and "paths" in tables  # others were sealed as small as can be
    }


def _without_ids(name: str, table: ArrowTable) -> ArrowTable:
    """Return a table with null for the ids that a reader can make."""
    if WHERE_KNOWN.get(name) != "id":
        return table
    place = table.schema.get_field_index("id")
    return table.set_column(place, table.schema.field(place), pa.nulls(len(table), pa.int64()))


def _with_neighbours(cpu: NDArray[Any], inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The rows inside, and the row before and after them of the same core."""
    wider = inside.copy()
    same = cpu[1:] == cpu[:-1]
    wider[:-1] |= same & inside[1:]
    wider[1:] |= same & inside[:-1]
    return wider


def _take(name: str, table: Any, rows: NDArray[Any]) -> Any:
    if name != "samples":
        return take_rows(table, rows)
    # `take_rows` would turn a column with nulls into Python objects; here only cgroups have any.
    arrays = []
    for column in arrow_schema(name).names:
        values = combine(table.column(column))
        if column == "cgroup":
            arrays.append(make_text(text_indices(values)[rows], values.dictionary))
        else:
            arrays.append(values.to_numpy()[rows])
    return _table(name, arrays)


def _table(name: str, arrays: list[Any]) -> Any:
    return pa.Table.from_arrays([pa.array(each) for each in arrays], schema=arrow_schema(name))
