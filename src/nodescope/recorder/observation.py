"""What an observer of the node is, and what it says each time it is asked.

An observer stands between one kind of source and the archive: it reads, keeps
what it needs to tell changes from sameness, and answers with rows, events and
gaps. It knows nothing of schedules, threads or files of the archive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from nodescope.recorder.watches.nic_reports import NicReports
from nodescope.sources.places import Places


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; `kind` is one of `records.EVENT_KINDS`."""

    time_ns: int
    kind: str
    subject: str
    message: str
    cpu: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    loud: bool = False  # said aloud by the recorder, once


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something of a table was not seen, from when to when, and why."""

    from_ns: int
    to_ns: int
    source: str
    reason: str
    lost: int | None = None


@dataclass(slots=True)
class Observation:
    """One answer. `rows` are by table; a row leaves out what is null."""

    rows: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    gaps: list[Unseen] = field(default_factory=list)

    def add(self, table: str, **row: Any) -> None:
        """A row of a table, by column; a column that may be null may be left out."""
        self.rows.setdefault(table, []).append(row)

    @property
    def empty(self) -> bool:
        return not (self.rows or self.events or self.gaps)


@dataclass(frozen=True, slots=True)
class Setting:
    """What an observer is made from."""

    places: Places
    archive: Path  # what earlier runs of the recorder left may be read from it
    nic_reports: NicReports = field(default_factory=NicReports)


class Observer(Protocol):
    """Something that is asked now and then.

    `observe` raises `SourceError` when it cannot answer: that becomes a gap, and
    it is asked again later. `begin_segment` is called before the first `observe`
    of each segment: what is only said when it changes is to be said whole again.
    """

    interval_ns: int
    """How often it wants to be asked."""
    patient: bool
    """Whether it may wait for somebody (a daemon, a slow file): it then gets a thread."""

    def begin_segment(self) -> None: ...

    def observe(self, now_ns: int) -> Observation: ...

    def close(self) -> None: ...


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; a column that some rows leave out is null there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
