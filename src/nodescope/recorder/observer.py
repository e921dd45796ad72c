"""The interface of an observer of the node.

An observer stands between one kind of source and the archive: it reads, keeps
what it needs to tell changes from sameness, and answers with rows, events and
gaps (`ingest.observation`). It knows nothing of schedules, threads or files of the archive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nodescope.ingest.observation import Observation
from nodescope.recorder.watches.core_owners import CoreOwners
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.sources.places import Places


@dataclass(frozen=True, slots=True)
class Setting:
    """The parts that an observer is made from."""

    places: Places
    archive: Path  # what earlier runs of the recorder left may be read from it
    log_reports: LogReports = field(default_factory=LogReports)
    core_owners: CoreOwners = field(default_factory=CoreOwners)  # filled by the recorder


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
