"""What an archive already tells: lines of the kernel's log, marks, jobs.

The archive itself is the memory: a thing is in it or it is not, whatever became
of the recorder that wrote it, so that nothing is told twice and nothing is left out.
A flush writes events before log lines; a recorder killed in between leaves events
whose lines are still to be told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodescope.archive.reader import Archive, Segment
from nodescope.errors import ArchiveError


@dataclass(frozen=True, slots=True)
class Told:
    """The last line that was told, -1 for none, and events of later ones that were."""

    sequence: int = -1
    time_ns: int = 0
    events: frozenset[int] = field(default_factory=frozenset)


def read_told(archive: Path, boot_id: str) -> Told:
    """What the archive tells of that boot; nothing if there is no archive."""
    try:
        segments = Archive.open(archive).segments()
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


def read_told_names(archive: Path, key: str, since_wall_ns: int) -> set[str]:
    """What events told since then have in their details under `key`."""
    try:
        segments = Archive.open(archive).segments()
    except ArchiveError:
        return set()
    found: set[Any] = set()
    for segment in reversed(segments):
        try:
            if segment.wall_to_ns < since_wall_ns:
                continue
            found |= _details(segment, key)
        except ArchiveError:
            continue  # a damaged one costs its own
    return {each for each in found if isinstance(each, str)}


def _event_sequences(segment: Segment) -> frozenset[int]:
    return frozenset(each for each in _details(segment, "sequence") if isinstance(each, int))


def _details(segment: Segment, key: str) -> set[Any]:
    quoted = json.dumps(key)
    return {
        json.loads(text).get(key)
        for text in segment.read("events", ["details"]).column("details").to_pylist()
        if text is not None and quoted in text
    }
