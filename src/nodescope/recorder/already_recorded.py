"""Read what an archive already has: kernel log lines, marks, jobs, zombies, loops.

The archive itself is the memory: a thing is in it or it is not, whatever became
of the recorder that wrote it, so that nothing is told twice and nothing is left out.
A flush writes events before log lines; a recorder killed in between leaves events
whose lines are still to be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nodescope.archive.layout import OPEN_DIRECTORY, SEALED_DIRECTORY, list_segment_names
from nodescope.archive.schema import typed_rows
from nodescope.errors import ArchiveError
from nodescope.judgement.loop_rules import is_often
from nodescope.records.details import DeclaredDetails, Details, parse_details
from nodescope.records.event import details_of_kind
from nodescope.records.event_details import KernelLineDetails, ZombieDetails
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.node_tables import MemoryCgroupsRow
from nodescope.records.recorder_tables import EventRow
from nodescope.records.table import RowType

if TYPE_CHECKING:
    from nodescope.archive.reader import Segment


@dataclass(frozen=True, slots=True)
class Told:
    """The last line that was told, -1 for none, and events of later ones that were."""

    sequence: int = -1
    time_ns: int = 0
    events: frozenset[int] = field(default_factory=frozenset)


def read_told(archive: Path, boot_id: str) -> Told:
    """Read what the archive has of that boot; nothing if there is no archive."""
    try:
        segments = _list_segments(archive)
    except ArchiveError:
        return Told()
    events: frozenset[int] | None = None
    for segment in reversed(segments):
        try:
            if segment.description.start.boot_id != boot_id:
                continue
            if events is None:  # only the last one can have been torn
                events = _event_sequences(segment)
            lines = segment.read("kernel_log", ["sequence", "time_ns"]).to_pydict()
        except ArchiveError:
            continue  # a damaged one costs its own lines: they are told again
        if lines["sequence"]:
            last, time_ns = max(zip(lines["sequence"], lines["time_ns"], strict=True))
            return Told(last, time_ns, frozenset(each for each in events if each > last))
    return Told(events=events or frozenset())


def read_told_names(
    archive: Path,
    declared: type[DeclaredDetails],
    name: Callable[[DeclaredDetails], str | None],
    since_wall_ns: int,
) -> set[str]:
    """Return the names that events told since then have in their details."""
    try:
        segments = _list_segments(archive)
    except ArchiveError:
        return set()
    found: set[str | None] = set()
    for segment in reversed(segments):
        try:
            if segment.wall_to_ns < since_wall_ns:
                continue
            found |= {name(each) for each in _read_details(segment, declared)}
        except ArchiveError:
            continue  # a damaged one costs its own
    return {each for each in found if each is not None}


@dataclass(frozen=True, slots=True)
class ToldWalk:
    """A walk over the memory cgroups, as it was told last."""

    time_ns: int
    took_ns: int
    file: str


def read_told_walk(archive: Path, boot_id: str, since_ns: int) -> ToldWalk | None:
    """The last one that was told since then; None: none was."""
    for segment in _segments_of(archive, boot_id, since_ns):
        walks = [
            ToldWalk(row.time_ns, row.walk_ns, row.walk_file or "")
            for row in _rows(segment, MemoryCgroupsRow)
            if row.walk_ns is not None
        ]
        if walks:
            return max(walks, key=lambda each: each.time_ns)
    return None


@dataclass(frozen=True, slots=True)
class ToldZombies:
    """The threshold that was told last to have been passed, and how few there were since."""

    kind: str
    threshold: int
    dying: int  # when it was told
    least: int  # since then


def read_told_zombies(archive: Path, boot_id: str) -> ToldZombies | None:
    """Read the last reported zombies of this boot; None if none were reported."""
    least: int | None = None
    for segment in _segments_of(archive, boot_id):
        crossing = _last_crossing(segment)
        after_ns = -1 if crossing is None else crossing.time_ns
        counts = _rows(segment, MemoryCgroupsRow)
        since = [row.dying for row in counts if row.time_ns > after_ns]
        least = min([n for n in (least, *since) if n is not None], default=None)
        if crossing is not None:
            told = crossing.dying if least is None else min(crossing.dying, least)
            return ToldZombies(crossing.kind, crossing.threshold, crossing.dying, told)
    return None


class _Crossing(NamedTuple):
    """A threshold that was passed."""

    time_ns: int
    kind: str
    threshold: int
    dying: int


def _last_crossing(segment: Segment) -> _Crossing | None:
    crossings = []
    for row in _events(segment, _kinds_with(ZombieDetails)):
        told = parse_details(ZombieDetails, row.details)
        if told.threshold is not None and told.dying is not None:
            crossings.append(_Crossing(row.time_ns, row.kind, told.threshold, told.dying))
    return max(crossings, default=None)


def read_told_loops(archive: Path, boot_id: str, since_ns: int) -> set[str]:
    """Return units reported to loop since then, or restarted so often that they still did."""
    told: set[str] = set()
    again: Counter[str] = Counter()
    for segment in _segments_of(archive, boot_id, since_ns):
        for row in _events(segment, {"unit_loop", "unit_restart"}):
            if row.time_ns < since_ns:
                continue
            if row.kind == "unit_loop":
                told.add(row.subject)
            else:
                again[row.subject] += 1
    return told | {unit for unit, count in again.items() if is_often(count)}


def _list_segments(archive: Path) -> list[Segment]:
    """Return all segments of an archive, without the reader's modules where there is none."""
    folders = (archive / SEALED_DIRECTORY, archive / OPEN_DIRECTORY)
    if not any(list_segment_names(folder) for folder in folders):
        return []
    from nodescope.archive.reader import Archive

    return Archive.open(archive).segments()


def _segments_of(archive: Path, boot_id: str, since_ns: int = 0) -> Iterator[Segment]:
    """Those of a boot that reach beyond a time of its clock, the latest first."""
    try:
        segments = _list_segments(archive)
    except ArchiveError:
        return
    for segment in reversed(segments):
        try:
            description = segment.description
            if description.start.boot_id == boot_id and description.to_ns >= since_ns:
                yield segment
        except ArchiveError:
            continue  # a damaged one costs its own


def _rows(segment: Segment, kind: type[RowType]) -> list[RowType]:
    """Read the rows of a table, with times of the segment's own clock; none if it is damaged."""
    try:
        return typed_rows(kind, segment.read(kind.table().name, kind.names()))
    except ArchiveError:
        return []


def _events(segment: Segment, kinds: Set[str]) -> list[EventRow]:
    """Read the events of some kinds, as `_rows` does."""
    try:
        return _read_events(segment, kinds)
    except ArchiveError:
        return []


def _read_events(segment: Segment, kinds: Set[str]) -> list[EventRow]:
    if kinds.isdisjoint(segment.read("events", ["kind"]).column("kind").to_pylist()):
        return []  # most segments: their other columns need not be read
    rows = typed_rows(EventRow, segment.read("events", EventRow.names()))
    return [row for row in rows if row.kind in kinds]


def _kinds_with(declared: type[Details]) -> Set[str]:
    """Return the kinds of events that have details of a class."""
    return {name for name, kind in EVENT_KINDS.items() if issubclass(kind.details, declared)}


def _event_sequences(segment: Segment) -> frozenset[int]:
    lines = (each.sequence for each in _read_details(segment, KernelLineDetails))
    return frozenset(each for each in lines if each is not None)


def _read_details(segment: Segment, declared: type[DeclaredDetails]) -> Iterator[DeclaredDetails]:
    """Yield the details of the events whose kind has details of a class."""
    for row in _read_events(segment, _kinds_with(declared)):
        known = details_of_kind(row.kind)
        if row.details is not None and issubclass(known, declared):
            yield parse_details(known, row.details)
