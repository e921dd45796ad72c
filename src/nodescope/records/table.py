"""What a table and a column are, before any is declared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ColumnKind(StrEnum):
    """What a column's numbers mean, and so what may be done with them."""

    TIME = "time"  # a point on the monotonic clock
    KEY = "key"  # says which thing the row is about
    LABEL = "label"  # a name or a text
    REFERENCE = "reference"  # a row number of another table of the same segment
    COUNTER = "counter"  # only grows; derive a rate
    GAUGE = "gauge"  # a level at that time
    COUNT = "count"  # how many, in this row's interval: may be summed


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `type` is an Arrow type by name, `text` a repeated string."""

    name: str
    type: str
    kind: ColumnKind
    help: str
    unit: str = ""
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table; its rows are sorted by `order` in a sealed segment."""

    name: str
    help: str
    columns: tuple[Column, ...]
    order: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)
