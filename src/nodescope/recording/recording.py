"""A recording: the one typed way to ask what a node did.

Every question names a window or a moment of wall time and costs by that time, not by the
length of the recording. Parts are handed out one by one and forgotten, so that a window
of twelve hours takes the memory of one segment. The open segment is computed when it is
looked at; a window that ends before it started leaves it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.archive.hours import Hour
from nodescope.archive.reader import Archive, Segment
from nodescope.errors import ArchiveError
from nodescope.recording.core_readings import (
    CoreReadings,
    check_cores,
    count_cores,
    find_cores,
    read_core_readings,
)
from nodescope.recording.gaps import read_gaps
from nodescope.recording.part import Part, Parts, find_history, overlapping
from nodescope.recording.rows import Where, read_rows, read_state
from nodescope.recording.window import TimeExtent, Window
from nodescope.records.recorder_tables import Gap
from nodescope.records.table import RowType

if TYPE_CHECKING:
    from nodescope.recording.coverage import Coverage, DamagedTable
    from nodescope.recording.sample_columns import SampleColumns
    from nodescope.records.event import Event


class Recording:
    """The parts of one node's recording, and the questions that can be asked of them."""

    def __init__(
        self,
        parts: Parts,
        node: Mapping[str, object] | None = None,
        lost: Sequence[ArchiveError] = (),
        hours: Callable[[], Sequence[Hour]] = tuple,
    ) -> None:
        self.parts = parts
        self.node = node or {}
        self.lost = lost  # segments of which nothing can be read
        self.hours = hours  # read only for long windows

    @classmethod
    def open(cls, path: str | Path) -> Recording:
        """Open a folder or a bundle; damaged segments are left out."""
        archive = Archive.open(path)
        listing = archive.listing()
        return cls(listing.segments, archive.info.node, listing.lost, archive.hours)

    @property
    def node_name(self) -> str:
        """Return the name of the node."""
        return str(self.node.get("name") or "node")

    # -- time --------------------------------------------------------------

    @cached_property
    def extent(self) -> TimeExtent:
        """From when to when it goes."""
        return TimeExtent(self.parts)

    @property
    def history(self) -> Window:
        """The time before the recording of which it has events: what logs remembered."""
        return find_history(self.parts, self.extent.from_ns)

    def overlapping(self, window: Window) -> list[Part]:
        """Return the parts that may hold something of the window."""
        return overlapping(self.parts, window)

    def coverage(self, table: str, window: Window) -> Coverage:
        """Return in which spans of a window a table was observed."""
        from nodescope.recording.coverage import find_coverage

        return find_coverage(self.parts, table, window)

    def damaged(self, window: Window) -> list[DamagedTable]:
        """Return the tables of a window that were recorded and cannot be read."""
        from nodescope.recording.coverage import find_damaged

        return find_damaged(self.parts, window)

    def gaps(self, window: Window) -> list[Gap]:
        """Return what was not seen in a window, and why."""
        return read_gaps(self.parts, window)

    # -- rows --------------------------------------------------------------

    def has(self, table: str, window: Window) -> bool:
        """Decide whether a part of the window has any row of a table."""
        return any(table in part.description.tables for part in self.overlapping(window))

    def rows(
        self, kind: type[RowType], window: Window, where: Where | None = None
    ) -> list[RowType]:
        """Return the rows of a window, with wall times; of one subject with `where`."""
        return list(read_rows(self.parts, kind, window, where))

    def state(self, kind: type[RowType], at_ns: int) -> list[RowType]:
        """Return the last row of each subject at a moment; nothing if it was not observed."""
        return read_state(self.parts, kind, at_ns)

    def events(self, window: Window, *kinds: str) -> list[Event]:
        """Return what happened in a window in the order of time; of some kinds, or all."""
        # Kinds and details of events are declared by the dozen: a view of samples needs none.
        from nodescope.recording.events import leave_out_superseded, read_events

        found = leave_out_superseded(read_events(self.parts, window, kinds))
        return sorted(found, key=lambda event: event.time_ns)

    @property
    def imported(self) -> bool:
        """Return whether all of it was imported: no recorder looked at the node."""
        costs = [None if part.is_open else part.description.cost for part in self.parts]
        return bool(costs) and all(cost and not cost.is_recorders for cost in costs)

    @property
    def estimated_times(self) -> list[str]:
        """Return which imported files' times were guessed from the file's age, in words."""
        from nodescope.records.event_details import ImportDetails

        costs = ((part, part.description.cost) for part in self.parts if not part.is_open)
        imported = Recording([part for part, cost in costs if cost and not cost.is_recorders])
        if not imported.parts:
            return []
        whole = Window(imported.extent.from_ns, imported.extent.to_ns)
        events = imported.events(whole, "import")
        guessed = (each for each in events if each.get(ImportDetails).estimated)
        return [f"{each.subject}: {each.message}" for each in guessed]

    # -- columns -----------------------------------------------------------

    def core_readings(self, window: Window) -> Iterator[CoreReadings]:
        """Read per-core time, from the reading before the window to the one after."""
        return read_core_readings(self.parts, window)

    def count_cores(self, window: Window) -> int:
        """Return how many cores the window's first readings are of."""
        return count_cores(self.parts, window)

    def has_cores(self, wanted: Set[int] | None) -> bool:
        """Decide whether all these cores were recorded."""
        return not wanted or wanted <= find_cores(self.parts, wanted)

    def check_cores(self, wanted: Set[int] | None) -> None:
        """Refuse cores that were not recorded: an empty answer would look like idleness."""
        check_cores(self.parts, wanted or frozenset())

    def samples(self, window: Window, roll_up: str | None = None) -> Iterator[SampleColumns]:
        """Read the samples of a window, part by part.

        Whoever only adds up the rows of a `roll_up` gets whole hours in the place of their parts.
        """
        from nodescope.recording.sample_columns import SampleColumns

        parts = self.overlapping(window)
        if roll_up is not None:
            parts = self._by_hour(parts, window, roll_up)
        for part in parts:
            yield SampleColumns(part, window.from_ns, window.to_ns)

    def _by_hour(self, parts: list[Part], window: Window, table: str) -> list[Part]:
        """Return the parts, each hour of which all are there and in the window as one."""
        inside = {
            part.name: part.description
            for part in parts
            if not part.is_open and table in part.description.tables
            and window.from_ns <= part.wall_from_ns and part.wall_to_ns < window.to_ns
        }  # fmt: skip
        found: dict[str, Part] = {}
        taken: set[str] = set()
        for hour in self.hours():
            members = [inside[name] for name in hour.members if name in inside]
            if table in hour.tables and len(members) == len(hour.members):
                found[hour.members[0]] = Segment(hour.directory, hour.describe(members))
                taken.update(hour.members)
        return [
            found.get(part.name, part)
            for part in parts
            if part.name in found or part.name not in taken
        ]
