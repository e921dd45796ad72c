"""An observation: rows and events of one time, and what could not be seen."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodescope.records.event import Event
from nodescope.records.recorder_tables import Gap
from nodescope.records.table import Row, RowType


@dataclass(slots=True)
class Observation:
    """One answer of an observer; its rows may be of several tables."""

    rows: list[Row] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Add a row of a table."""
        self.rows.append(row)

    def rows_of(self, kind: type[RowType]) -> list[RowType]:
        """Return the rows of one table."""
        return [row for row in self.rows if isinstance(row, kind)]

    def add_gap(
        self, from_ns: int, to_ns: int, source: str, reason: str, lost: int | None = None
    ) -> None:
        """Add that something of a table was not seen, from when to when, and why."""
        self.gaps.append(Gap(from_ns=from_ns, to_ns=to_ns, source=source, lost=lost, reason=reason))

    @property
    def empty(self) -> bool:
        return not (self.rows or self.events or self.gaps)
