"""Typed rows as columns: the form in which they are written."""

from collections.abc import Iterable, Sequence
from operator import attrgetter

from nodescope.records.table import Row

Columns = dict[str, list[object]]


def columns_of(rows: Sequence[Row]) -> Columns:
    """Return the rows of one table as columns; there is at least one."""
    names = rows[0].names()
    values = zip(*map(attrgetter(*names), rows), strict=True)
    return dict(zip(names, map(list, values), strict=True))


def columns_by_table(rows: Iterable[Row]) -> dict[str, Columns]:
    """Return rows of any tables as columns, by the name of their table."""
    by_kind: dict[type[Row], list[Row]] = {}
    for row in rows:
        by_kind.setdefault(type(row), []).append(row)
    return {kind.table().name: columns_of(some) for kind, some in by_kind.items()}
