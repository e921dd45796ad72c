"""What was observed at one time: rows, events, and what could not be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodescope.records.event import Event
from nodescope.records.recorder import Gap


@dataclass(slots=True)
class Observation:
    """One answer of an observer. `rows` are by table; a row leaves out what is null."""

    rows: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def add(self, table: str, **row: Any) -> None:
        """Add a row of a table, by column; a column that may be null may be left out."""
        self.rows.setdefault(table, []).append(row)

    def add_gap(
        self, from_ns: int, to_ns: int, source: str, reason: str, lost: int | None = None
    ) -> None:
        """Add that something of a table was not seen, from when to when, and why."""
        self.gaps.append(Gap(from_ns=from_ns, to_ns=to_ns, source=source, lost=lost, reason=reason))

    @property
    def empty(self) -> bool:
        return not (self.rows or self.events or self.gaps)


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns; a column that some rows leave out is null there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
