"""What a segment is, so that listing an archive opens none of its tables.

It carries the clock pairs that place monotonic times on the wall clock: one
at the start, and one wherever the wall clock stepped by more than 50 ms (less
is the slewing of NTP, which a two-minute segment need not follow).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodescope.clock import CLOCK_STEP_NS
from nodescope.records.recorder_tables import Gap

if TYPE_CHECKING:  # it imports pyarrow, which marking and freezing do without
    from nodescope.archive.schema import ArrowTable

MAX_GAPS = 16  # described in full; how many there are is in `tables`
MAX_REASON = 200


@dataclass(frozen=True, slots=True)
class Start:
    """The facts that are known when a segment is opened."""

    name: str
    boot_id: str
    run_ns: int  # monotonic time the recorder started at: tells runs apart
    first_of_run: bool
    tick_ns: int
    monotonic_ns: int
    wall_ns: int


class TableExtent(NamedTuple):  # quick to make: twelve hours have thousands
    """Rows and bytes of one table of a sealed segment."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RecorderCost:
    """The first and the last heartbeat of a segment, and the worst between.

    Of an import little is known: nobody recorded what the recorder cost.
    """

    time_first_ns: int
    time_last_ns: int
    cpu_first_ns: int | None
    cpu_last_ns: int | None
    rss_last_bytes: int | None
    rss_max_bytes: int | None
    late_max_ns: int | None
    lost_first: int | None
    lost_last: int | None
    frequency_hz: int | None  # 0: nothing was sampled
    folded_first: int | None = None
    folded_last: int | None = None

    @property
    def is_recorders(self) -> bool:
        """Return whether a recorder wrote it, which always knows its memory; an import does not."""
        return self.rss_last_bytes is not None


COST_FIELDS = tuple(RecorderCost.__dataclass_fields__)  # two times, which are always known, first


@dataclass(frozen=True, slots=True)
class Description:
    """A segment in brief."""

    start: Start
    from_ns: int
    to_ns: int
    wall_from_ns: int
    wall_to_ns: int
    clock: tuple[tuple[int, int], ...]  # (monotonic from when on, what to add)
    tables: Mapping[str, TableExtent]
    cost: RecorderCost | None = None
    gaps: tuple[Gap, ...] = field(default=())
    wall_history_ns: int | None = None  # of the first event from before the recorder ran

    @property
    def name(self) -> str:
        return self.start.name

    @property
    def run(self) -> tuple[str, int]:
        """Return what tells the runs of recorders apart: segments of one run share it."""
        return self.start.boot_id, self.start.run_ns

    @property
    def samples(self) -> int:
        return self.tables["samples"].rows if "samples" in self.tables else 0

    @property
    def bytes(self) -> int:
        """Return the bytes that its tables take on disk."""
        return sum(extent.bytes for extent in self.tables.values())

    @property
    def lost(self) -> int:
        """Records lost in the rings: since the segment before, if that was of this run."""
        if self.cost is None:
            return 0
        before = 0 if self.start.first_of_run else self.cost.lost_first or 0
        return (self.cost.lost_last or 0) - before

    @property
    def folded(self) -> int | None:
        """Samples whose stack was folded; None if an earlier version or an import wrote it."""
        if self.cost is None or self.cost.folded_last is None:
            return None
        before = 0 if self.start.first_of_run else self.cost.folded_first or 0
        return self.cost.folded_last - before


def wall_ns(clock: tuple[tuple[int, int], ...], monotonic_ns: Any) -> Any:
    """Place monotonic times (one, or an array) on the wall clock."""
    if len(clock) == 1:
        return monotonic_ns + clock[0][1]
    since = np.array([pair[0] for pair in clock], np.int64)
    offset = np.array([pair[1] for pair in clock], np.int64)
    index = np.maximum(np.searchsorted(since, monotonic_ns, side="right") - 1, 0)
    return monotonic_ns + offset[index]


def clock_pairs(start: Start, heartbeats: Any) -> tuple[tuple[int, int], ...]:
    """The pair a segment started with and those where the wall clock stepped."""
    pairs = [(start.monotonic_ns, start.wall_ns - start.monotonic_ns)]
    times = heartbeats.column("time_ns").to_numpy()
    offsets = heartbeats.column("wall_ns").to_numpy() - times
    if len(times) and times[0] <= start.monotonic_ns:
        pairs = [(int(times[0]), int(offsets[0]))]
    for time, offset in zip(times.tolist(), offsets.tolist(), strict=True):
        if abs(offset - pairs[-1][1]) > CLOCK_STEP_NS:
            pairs.append((time, offset))
    return tuple(pairs)


def describe(
    start: Start,
    tables: Mapping[str, ArrowTable],
    extents: Mapping[str, TableExtent],
    clock: tuple[tuple[int, int], ...] | None = None,
) -> Description:
    """Describe a segment from its sealed tables; a part of one keeps the whole one's clock."""
    clock = clock or clock_pairs(start, tables["heartbeats"])
    cost = _cost(tables["heartbeats"])
    times, history = _times(start, tables, cost)
    first, last = (min(times), max(times)) if times else (start.monotonic_ns,) * 2
    wall_from, wall_to = wall_extent(clock, first, last)
    return Description(
        start,
        first,
        last,
        wall_from,
        wall_to,
        clock,
        dict(extents),
        cost,
        _gaps(tables["gaps"], clock),
        None if history is None else int(wall_ns(clock, history)),
    )


def wall_extent(clock: tuple[tuple[int, int], ...], first: int, last: int) -> tuple[int, int]:
    """Return the first and the last wall time between two monotonic ones.

    A step inside the segment may put its end, on the wall, before its start.
    """
    walls = [int(wall_ns(clock, time)) for time in (first, last)]
    walls += [since + offset for since, offset in clock if first <= since <= last]
    walls += [after[0] + before[1] for before, after in pairwise(clock) if after[0] <= last]
    return min(walls), max(walls)


def _times(
    start: Start, tables: Mapping[str, ArrowTable], cost: RecorderCost | None
) -> tuple[list[int], int | None]:
    """First and last times of what was recorded, and of what the node remembered from before.

    The kernel's log reaches back to the boot: that is history, and the recording
    does not begin there. Nor does it end at an event that is dated after all else that
    the recorder wrote, as a mark in the future is.
    """
    columns = [
        ("samples", "tick", start.tick_ns),
        ("cores", "time_ns", 1),
        ("heartbeats", "time_ns", 1),
    ]
    times: list[int] = []
    for table, column, unit in columns:
        values: NDArray[np.int64] = tables[table].column(column).to_numpy()
        if len(values):
            times += [int(values.min()) * unit, int(values.max()) * unit]
    events: NDArray[np.int64] = tables["events"].column("time_ns").to_numpy()
    is_history = events < (start.run_ns if cost is not None else -(2**63))
    recorded = events[~is_history]
    if cost is not None and cost.is_recorders:
        recorded = recorded[recorded <= max(times)]
    if len(recorded):
        times += [int(recorded.min()), int(recorded.max())]
    return times, int(events.min()) if is_history.any() else None


def _cost(heartbeats: Any) -> RecorderCost | None:
    if not len(heartbeats):
        return None
    names = ("time_ns", "cpu_ns", "rss_bytes", "late_ns", "lost", "frequency_hz", "folded")
    get = {name: heartbeats.column(name).to_pylist() for name in names}
    cost = RecorderCost(
        time_first_ns=get["time_ns"][0],
        time_last_ns=get["time_ns"][-1],
        cpu_first_ns=get["cpu_ns"][0],
        cpu_last_ns=get["cpu_ns"][-1],
        rss_last_bytes=get["rss_bytes"][-1],
        rss_max_bytes=_most(get["rss_bytes"]),
        late_max_ns=_most(get["late_ns"]),
        lost_first=get["lost"][0],
        lost_last=get["lost"][-1],
        frequency_hz=get["frequency_hz"][-1],
        folded_first=get["folded"][0],
        folded_last=get["folded"][-1],
    )
    return without_zeros(cost)


def _most(values: Iterable[int | None]) -> int | None:
    return max((each for each in values if each is not None), default=None)


def without_zeros(cost: RecorderCost) -> RecorderCost:
    """Return a cost whose zeros mean 0: imports of earlier versions wrote 0 for not known."""
    if cost.rss_max_bytes != 0:
        return cost
    return replace(
        cost,
        cpu_first_ns=None,
        cpu_last_ns=None,
        rss_last_bytes=None,
        rss_max_bytes=None,
        late_max_ns=None,
        frequency_hz=cost.frequency_hz or None,
    )


def _gaps(gaps: Any, clock: tuple[tuple[int, int], ...]) -> tuple[Gap, ...]:
    return tuple(
        wall_gap(Gap(**row), clock).replace(reason=row["reason"][:MAX_REASON])
        for row in gaps.slice(0, MAX_GAPS).to_pylist()
    )


def wall_gap(gap: Gap, clock: tuple[tuple[int, int], ...]) -> Gap:
    """Return a segment's gap with its times on the wall clock."""
    return gap.replace(
        from_ns=int(wall_ns(clock, gap.from_ns)), to_ns=int(wall_ns(clock, gap.to_ns))
    )
