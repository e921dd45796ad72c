"""Tables, columns and typed rows: what a declaration is, before any is made.

A table is declared once, in one of two forms. A table of samples is a `Table` with its
columns: nobody handles its rows one by one. Every other table is a subclass of `Row` whose
fields are annotated with their column (`Annotated[int, counter("…")]`): the same class is
the archive's schema, the typed row that readers get and the typed row that observers write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, ClassVar, NamedTuple, Self, TypeVar

from nodescope.records.declared import Declared, Field, compile_init


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
    formerly: str | None = None  # what older archives call it


class Table:
    """One table; its rows are sorted by `order` in a sealed segment.

    `subject` are the columns that say what a row is about: the last row of a subject
    is its state. `observers` are the observers of the node that fill the table, the main
    one first: what is missing of it was not observed.
    """

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 (a declaration's help is called so everywhere)
        columns: tuple[Column, ...] | Callable[[], tuple[Column, ...]],
        order: tuple[str, ...] = (),
        subject: tuple[str, ...] = (),
        observers: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.help = help
        self._columns = columns
        self.order = order
        self.subject = subject
        self.observers = observers

    @property
    def observer(self) -> str | None:
        """The main observer; None if the table is not filled by observers."""
        return self.observers[0] if self.observers else None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in the order they are declared."""
        return self._columns() if callable(self._columns) else self._columns

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return next(column for column in self.columns if column.name == name)


class _ColumnNote(NamedTuple):
    """What an annotation adds to a field's type."""

    kind: ColumnKind
    help: str
    unit: str = ""
    type: str | None = None
    formerly: str | None = None


def time(help: str, unit: str = "") -> _ColumnNote:  # noqa: A002
    """Declare a column of times on the monotonic clock."""
    return _ColumnNote(ColumnKind.TIME, help, unit)


def key(help: str, *, type: str | None = None) -> _ColumnNote:  # noqa: A002
    """Declare a column that says which thing the row is about."""
    return _ColumnNote(ColumnKind.KEY, help, type=type)


def label(help: str, *, type: str | None = None, formerly: str | None = None) -> _ColumnNote:  # noqa: A002
    """Declare a column of names or texts."""
    return _ColumnNote(ColumnKind.LABEL, help, type=type, formerly=formerly)


def counter(help: str, unit: str = "") -> _ColumnNote:  # noqa: A002
    """Declare a column of raw counters."""
    return _ColumnNote(ColumnKind.COUNTER, help, unit)


def gauge(
    help: str,  # noqa: A002
    unit: str = "",
    *,
    type: str | None = None,  # noqa: A002
    formerly: str | None = None,
) -> _ColumnNote:
    """Declare a column of levels."""
    return _ColumnNote(ColumnKind.GAUGE, help, unit, type, formerly)


def count(help: str) -> _ColumnNote:  # noqa: A002
    """Declare a column of numbers that may be summed."""
    return _ColumnNote(ColumnKind.COUNT, help)


Time = Annotated[int, time("time of the reading", "ns")]

_ARROW_TYPES = {int: "int64", str: "text", bool: "bool"}


class Row(Declared):
    """A typed row; a subclass names its table and what the table is."""

    _table: ClassVar[Table]
    _all_but_time: ClassVar[Callable[[Row], tuple[object, ...]]]

    def __init_subclass__(
        cls,
        *,
        table: str,
        help: str,  # noqa: A002
        sorted_by: tuple[str, ...] = (),
        subject: tuple[str, ...] = (),
        observers: tuple[str, ...] = (),
    ) -> None:
        cls._table = Table(table, help, lambda: _columns(cls), sorted_by, subject, observers)

    def __init__(self, **values: Any) -> None:
        """Make the first row of a class, and what makes and compares the others fast."""
        kind = type(self)
        kind._all_but_time = attrgetter(*(name for name in kind.names() if name != "time_ns"))
        kind.__init__ = compile_init(kind)  # type: ignore[method-assign]
        kind.__init__(self, **values)

    @classmethod
    def table(cls) -> Table:
        """Return the table whose rows these are."""
        return cls._table

    def is_repeat_of(self, before: Self | None) -> bool:
        """Decide whether a row repeats an earlier one in everything but its time."""
        values = type(self)._all_but_time
        return before is not None and values(self) == values(before)


RowType = TypeVar("RowType", bound=Row)


def _columns(row: type[Row]) -> tuple[Column, ...]:
    return tuple(_column(field) for field in row.fields())


def _column(field: Field) -> Column:
    note: Any = field.note
    arrow = note.type or _ARROW_TYPES[field.type]
    return Column(field.name, arrow, note.kind, note.help, note.unit, field.nullable, note.formerly)
