"""Recordings held in memory: for tests, and for whoever made the rows just now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from nodescope.archive.description import Description, Start, TableExtent, describe, wall_ns
from nodescope.archive.layout import name_segment
from nodescope.archive.schema import (
    ArrowTable,
    ColumnData,
    arrow_schema,
    empty_table,
    make_batch,
)
from nodescope.archive.sealed_tables import derive_sealed
from nodescope.clock import Clock, read_pair
from nodescope.errors import UsageError
from nodescope.recording.part import Parts
from nodescope.recording.recording import Recording
from nodescope.records import OPEN_TABLES, SEALED_TABLES
from nodescope.records.columns import columns_by_table
from nodescope.records.recorder_tables import HeartbeatRow
from nodescope.records.table import Row


class MemoryPart:
    """A part whose tables lie in memory, in the shape of a sealed segment's."""

    is_open = False

    def __init__(self, description: Description, tables: Mapping[str, ArrowTable]) -> None:
        self._description = description
        self._tables = tables

    @property
    def description(self) -> Description:
        return self._description

    @property
    def name(self) -> str:
        return self._description.name

    @property
    def tick_ns(self) -> int:
        return self._description.start.tick_ns

    @property
    def wall_from_ns(self) -> int:
        return self._description.wall_from_ns

    @property
    def wall_to_ns(self) -> int:
        return self._description.wall_to_ns

    def wall_ns(self, monotonic_ns: Any) -> Any:
        return wall_ns(self._description.clock, monotonic_ns)

    def read(self, table: str, columns: Sequence[str] | None = None) -> Any:
        if table not in SEALED_TABLES:
            raise UsageError(f"no table {table!r} in a segment", hint=", ".join(SEALED_TABLES))
        content = self._tables.get(table)
        if content is None:
            content = empty_table(table)
        names = arrow_schema(table).names if columns is None else list(columns)
        unknown = [name for name in names if name not in arrow_schema(table).names]
        if unknown:
            raise UsageError(f"no column {unknown[0]!r} in table {table}")
        return content.select(names)

    def where(self, table: str) -> str:
        return f"{self.name}/{table} in memory"


def hold_in_memory(recording: Recording) -> Recording:
    """Return the same recording, read whole."""
    parts = [
        MemoryPart(part.description, {name: part.read(name) for name in part.description.tables})
        for part in recording.parts
    ]
    return Recording(parts, recording.node)


def recording_of(rows: Iterable[Row], node: Mapping[str, object] | None = None) -> Recording:
    """Return a recording of these rows, whose times are wall times; it lasts as long as they."""
    listed = list(rows)
    times = [time for row in listed for time in [getattr(row, "time_ns", None)] if time is not None]
    beats = [HeartbeatRow(time_ns=time, wall_ns=time) for time in sorted({min(times), max(times)})]
    opened = {name: empty_table(name) for name in OPEN_TABLES}
    for name, columns in columns_by_table([*listed, *beats]).items():
        opened[name] = pa.Table.from_batches([make_batch(name, columns)])
    start = Start(name_segment(1, 0), "", 0, True, 1, 0, 0)
    tables = derive_sealed(opened, start.tick_ns)
    return Recording([_sealed_part(start, tables)], node)


def _sealed_part(start: Start, tables: Mapping[str, ArrowTable]) -> MemoryPart:
    extents = {
        name: TableExtent(len(table), table.nbytes) for name, table in tables.items() if len(table)
    }
    return MemoryPart(describe(start, tables, extents), tables)


class MemoryWriter:
    """Takes rows as `ArchiveWriter` does, and gives them back as a recording.

    One writer is one run of a recorder; `before` are the parts of the runs before it.
    """

    def __init__(
        self, node: Mapping[str, object], clock: Clock, tick_ns: int, before: Parts = ()
    ) -> None:
        self._node = node
        self._clock = clock
        self._tick_ns = tick_ns
        self._run_ns = clock.monotonic_ns()
        self._parts = list(before)
        self._runs_before = len(self._parts)
        self._start: Start | None = None  # of the present part, once it has a row
        self._pending: dict[str, list[Any]] = {name: [] for name in OPEN_TABLES}

    def _open(self) -> Start:
        pair = read_pair(self._clock)
        return Start(
            name=name_segment(len(self._parts) + 1, pair.wall_ns),
            boot_id=str(self._node.get("boot_id", "")),
            run_ns=self._run_ns,
            first_of_run=len(self._parts) == self._runs_before,
            tick_ns=self._tick_ns,
            monotonic_ns=pair.monotonic_ns,
            wall_ns=pair.wall_ns,
        )

    @property
    def rows(self) -> Mapping[str, int]:
        """How many rows the present part has, by table."""
        return {name: sum(map(len, batches)) for name, batches in self._pending.items()}

    def append(self, table: str, columns: ColumnData) -> None:
        """Add rows to a table, as columns."""
        if table not in OPEN_TABLES:
            raise UsageError(f"{table} is not a table that is recorded")
        batch = make_batch(table, columns)
        if len(batch):
            self._start = self._start or self._open()
            self._pending[table].append(batch)

    def seal_segment(self) -> None:
        """End the present part; the next one begins with its first row."""
        if self._start is None:
            return
        opened = {
            name: pa.Table.from_batches(batches, arrow_schema(name))
            for name, batches in self._pending.items()
        }
        self._parts.append(_sealed_part(self._start, derive_sealed(opened, self._tick_ns)))
        self._start = None
        self._pending = {name: [] for name in OPEN_TABLES}

    def finish(self) -> Recording:
        """Return what was recorded."""
        self.seal_segment()
        return Recording(self._parts, self._node)
