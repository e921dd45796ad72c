"""A node recorded for twenty minutes, written the same way to disk and into memory.

Seconds of the recording are those of `SEGMENTS`. The wall clock is set forward in the third
segment. The recorder is stopped after it and started again a minute later. The last segment
is as an import leaves it: samples and a clock, and nobody who says what recording cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.archive.conftest import Sample, Tape

from nodescope.archive.schema import ColumnData
from nodescope.records.columns import columns_by_table
from nodescope.records.node_tables import MemoryCgroupsRow, SourceCostRow, UnitRow
from nodescope.records.recorder_tables import CoreRow, EventRow, Gap, HeartbeatRow
from nodescope.records.table import Row

SECOND = 1_000_000_000
TICK_NS = 100_000
NODE = {"name": "recorded", "boot_id": "boot", "cpus": 2}
ZERO_NS = 1_000 * SECOND  # the first second, on the monotonic clock
ZERO_WALL_NS = 1_700_000_000 * SECOND
STEP_AT_S, STEP_S = 300, 7
HISTORY_S = -200  # the kernel's log remembers this second

# run, from when to when, in seconds
SEGMENTS = ((1, 0, 120), (1, 120, 240), (1, 240, 840), (2, 900, 1020), (3, 1100, 1160))
END_S = 1160
IMPORTED = 3  # run
OBSERVERS = ("units", "memory_cgroups", "containers")  # nobody asks for pressure


def at(second: float) -> int:
    """A second of the recording on the monotonic clock."""
    return ZERO_NS + round(second * SECOND)


def wall(second: float) -> int:
    """A second of the recording on the wall clock."""
    return ZERO_WALL_NS + round((second + STEP_S * (second >= STEP_AT_S)) * SECOND)


@dataclass
class HandClock:
    """Both clocks, standing at a second of the recording."""

    second: float = 0

    def monotonic_ns(self) -> int:
        return at(self.second)

    def wall_ns(self) -> int:
        return wall(self.second)


class Writer(Protocol):
    """What takes rows, on disk or in memory."""

    def append(self, table: str, columns: ColumnData) -> None: ...

    def seal_segment(self) -> object: ...


# -- what is recorded, with times in seconds ---------------------------------------


def units(run: int, start: int, stop: int) -> list[tuple[float, UnitRow]]:
    """Everything once, a second after a segment's start; then what changed."""
    if run == IMPORTED:
        return []
    known = [
        (start + 1.0, UnitRow(time_ns=0, unit="ssh.service", active="active", restarts=0)),
        (start + 1.0, UnitRow(time_ns=0, unit="loop.service", active="active", restarts=start)),
    ]
    changes = range(start + 60, min(stop, start + 240), 60)
    return known + [
        (each, UnitRow(time_ns=0, unit="loop.service", active="failed", restarts=each))
        for each in changes
    ]


def zombies(run: int, start: int, stop: int) -> list[tuple[float, MemoryCgroupsRow]]:
    """A count every ten seconds."""
    return [
        (each, MemoryCgroupsRow(time_ns=0, version="v2", tracked=each))
        for each in range(start, stop if run != IMPORTED else start, 10)
    ]


def costs(run: int, start: int, stop: int) -> list[tuple[float, SourceCostRow]]:
    """What each observer cost, once near the end: who was asked is known by it."""
    return [
        (stop - 1.0, SourceCostRow(time_ns=0, source=each, cpu_ns=1, reads=1))
        for each in (OBSERVERS if run != IMPORTED else ())
    ]


def events(run: int, start: int, stop: int) -> list[tuple[float, EventRow]]:
    """A line of the log every 45 s; the first segment remembers one from before it."""
    told: list[tuple[float, EventRow]] = [
        (each, EventRow(time_ns=0, kind="nic_reset", subject="eth0", message=f"at {each}"))
        for each in range(start + 5, stop, 45)
    ]
    if run != IMPORTED:
        told.append((stop - 2.0, EventRow(time_ns=0, kind="mark", subject="", message="end")))
    if start == 0:
        details = '{"queue": 5}'
        told.append((HISTORY_S, EventRow(time_ns=0, kind="nic_tx_timeout", subject="eth0",
                                         message="before", details=details)))  # fmt: skip
    return told


def heartbeats(run: int, start: int, stop: int) -> list[tuple[float, HeartbeatRow]]:
    """The clocks every five seconds; an import has nothing else to say."""
    row = HeartbeatRow(time_ns=0, wall_ns=0)
    if run != IMPORTED:
        row = row.replace(cpu_ns=start, rss_bytes=1, written_bytes=1, samples=0, lost=0, late_ns=0,
                          frequency_hz=97)  # fmt: skip
    beats = [*range(start, stop, 5), stop - 0.5]
    return [(each, row.replace(wall_ns=wall(each))) for each in beats]


def cores(run: int, start: int, stop: int) -> list[tuple[float, CoreRow]]:
    """Two cores, read every second."""
    states = dict.fromkeys(CoreRow.names()[2:], 0)
    return [
        (each, CoreRow(cpu=cpu, time_ns=0, **{**states, "user": each, "idle": each * cpu}))
        for each in range(start, stop if run != IMPORTED else start)
        for cpu in (0, 1)
    ]


GAPS = (
    (30, 40, Gap(from_ns=0, to_ns=0, source="units", reason="the bus did not answer")),
    (50, 55, Gap(from_ns=0, to_ns=0, source="samples", cpu=1, lost=5, reason="ring full")),
    (500, 520, Gap(from_ns=0, to_ns=0, source="cores", reason="late " + "x" * 300)),
)

SERIES: tuple[Callable[[int, int, int], Sequence[tuple[float, Row]]], ...] = (
    units, zombies, costs, events, heartbeats, cores,
)  # fmt: skip


def samples(run: int, start: int, stop: int) -> list[float]:
    """Two samples a second, for the first ten seconds of each minute."""
    del run
    return [each + half for each in range(start, stop) if each % 60 < 10 for half in (0.25, 0.75)]


# -- writing it ----------------------------------------------------------------------


def write_node(open_run: Callable[[HandClock], Writer], close_run: Callable[[Any], None]) -> None:
    """Write all of it; `open_run` and `close_run` begin and end a run of the recorder."""
    clock = HandClock()
    before, writer = 0, None
    for run, start, stop in SEGMENTS:
        clock.second = start
        if run != before:
            if writer is not None:
                close_run(writer)
            before, writer = run, open_run(clock)
        assert writer is not None
        _write_segment(writer, run, start, stop)
    close_run(writer)


def _write_segment(writer: Writer, run: int, start: int, stop: int) -> None:
    for series in SERIES:
        rows = [row.replace(time_ns=at(second)) for second, row in series(run, start, stop)]
        _append(writer, rows)
    gaps = [
        gap.replace(from_ns=at(from_s), to_ns=at(to_s))
        for from_s, to_s, gap in GAPS
        if start <= from_s < stop
    ]
    _append(writer, gaps)
    taker: Any = writer  # a writer in memory takes the same rows
    stack = (("/app", "f", False),)
    Tape(taker).append(
        Sample(0, at(second) // TICK_NS, 1, 0, "/", "app", kernel=False, stack=stack)
        for second in samples(run, start, stop)
    )
    if stop != END_S:
        writer.seal_segment()


def _append(writer: Writer, rows: Sequence[Row]) -> None:
    for table, columns in columns_by_table(rows).items():
        writer.append(table, columns)
