"""`segment.json`: what a segment is, so that listing an archive opens nothing else.

It carries the clock pairs that place monotonic times on the wall clock: one
at the start, and one wherever the wall clock stepped by more than 50 ms (less
is the slewing of NTP, which a two-minute segment need not follow).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nodescope.archive.files import SEGMENT_FILE, read_json
from nodescope.archive.layout import FORMAT, check_format
from nodescope.clock import CLOCK_STEP_NS
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat
from nodescope.quantities import SECOND_NS
from nodescope.records import TABLES
from nodescope.records.json import JsonObject
from nodescope.records.recorder_tables import Gap

if TYPE_CHECKING:  # it imports pyarrow, which marking and freezing do without
    from nodescope.archive.schema import ArrowTable

MAX_GAPS = 16  # described in full; how many there are is in `tables`
MAX_REASON = 200

Value = TypeVar("Value")


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


_COST_FIELDS = tuple(RecorderCost.__dataclass_fields__)  # two times, which are always known, first


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
    times, history = _times(start, tables)
    first, last = (min(times), max(times)) if times else (start.monotonic_ns,) * 2
    # A step inside the segment may put its end, on the wall, before its start.
    walls = [int(wall_ns(clock, time)) for time in (first, last)]
    walls += [since + offset for since, offset in clock if first <= since <= last]
    walls += [after[0] + before[1] for before, after in pairwise(clock) if after[0] <= last]
    return Description(
        start,
        first,
        last,
        min(walls),
        max(walls),
        clock,
        dict(extents),
        _cost(tables["heartbeats"]),
        _gaps(tables["gaps"], clock),
        None if history is None else int(wall_ns(clock, history)),
    )


def _times(start: Start, tables: Mapping[str, ArrowTable]) -> tuple[list[int], int | None]:
    """First and last times of what was recorded, and of what the node remembered from before.

    The kernel's log reaches back to the boot: that is history, and the recording
    does not begin there.
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
    recorded = events[events >= start.run_ns] if len(tables["heartbeats"]) else events
    if len(recorded):
        times += [int(recorded.min()), int(recorded.max())]
    return times, int(events.min()) if len(recorded) < len(events) else None


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
    return _without_zeros(cost)


def _most(values: Iterable[int | None]) -> int | None:
    return max((each for each in values if each is not None), default=None)


def _without_zeros(cost: RecorderCost) -> RecorderCost:
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


def start_to_json(start: Start) -> dict[str, object]:
    """The content of an open segment's `segment.json`."""
    return {"format": FORMAT, "start": asdict(start)}


def description_to_json(description: Description) -> dict[str, object]:
    """The content of a sealed segment's `segment.json`."""
    content = asdict(description)
    content["tables"] = {name: [e.rows, e.bytes] for name, e in description.tables.items()}
    content["gaps"] = [gap.as_dict() for gap in description.gaps]
    return {"format": FORMAT, **content}


def read_start(directory: Path) -> Start:
    """Read an open segment's `segment.json`."""
    return _checked(directory, lambda content: _start(_field(content, "start", dict)))


def read_description(directory: Path) -> Description:
    """Read a sealed segment's `segment.json`; nothing in it is taken on trust."""
    return _checked(directory, _description)


Parsed = TypeVar("Parsed", Start, Description)


def _checked(directory: Path, parse: Callable[[JsonObject], Parsed]) -> Parsed:
    folder = str(directory)  # Paths would be a fifth of a listing of twelve hours
    path = f"{folder}/{SEGMENT_FILE}"
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise CorruptSegment(folder, f"it has no {SEGMENT_FILE}") from None
    except ArchiveError as error:
        raise CorruptSegment(path, error.reason) from error
    return _parsed(path, folder.rpartition("/")[2], content, parse)


def parse_description(path: str, name: str, content: JsonObject) -> Description:
    """The description of the segment `name`, from the content of its `segment.json`."""
    return _parsed(path, name, content, _description)


def _parsed(
    path: str, name: str, content: JsonObject, parse: Callable[[JsonObject], Parsed]
) -> Parsed:
    try:
        check_format(path, content.get("format"))
        parsed = parse(content)
    except NewerFormat:
        raise
    except ArchiveError as error:
        raise CorruptSegment(path, error.reason) from error
    except (TypeError, ValueError, OverflowError) as error:
        raise CorruptSegment(path, str(error)) from error
    if parsed.name != name:
        raise CorruptSegment(path, f"it describes {parsed.name!r}")
    return parsed


def _field(content: JsonObject, name: str, kind: type[Value]) -> Value:
    value = content.get(name)
    # bool is an int to Python, and not to us.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{name!r} is {value!r:.60}, not {kind.__name__}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{name!r} is out of range")
    return value


def _optional(content: JsonObject, name: str) -> int | None:
    return None if content.get(name) is None else _field(content, name, int)


def _integers(content: JsonObject, names: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        value = content.get(name)
        # Listing twelve hours asks this ten thousand times: the usual case at once.
        if type(value) is not int or not -(2**63) <= value < 2**63:
            value = _field(content, name, int)
        found[name] = value
    return found


def _start(content: JsonObject) -> Start:
    numbers = _integers(content, ("run_ns", "tick_ns", "monotonic_ns", "wall_ns"))
    if not 1 <= numbers["tick_ns"] <= SECOND_NS:
        raise ValueError(f"'tick_ns' is {numbers['tick_ns']}")
    return Start(
        name=_field(content, "name", str),
        boot_id=_field(content, "boot_id", str),
        first_of_run=_field(content, "first_of_run", bool),
        **numbers,
    )


def _description(content: JsonObject) -> Description:
    clock = tuple(_pair(pair) for pair in _field(content, "clock", list))
    if not clock:
        raise ValueError("'clock' has no pair")
    tables: dict[str, TableExtent] = {}
    for name, extent in _field(content, "tables", dict).items():
        rows, size = _pair(extent)
        if rows < 0 or size < 0 or name not in TABLES:
            raise ValueError("'tables' names a table that does not exist, or less than nothing")
        tables[name] = TableExtent(rows, size)
    cost = content.get("cost")
    return Description(
        start=_start(_field(content, "start", dict)),
        clock=clock,
        tables=tables,
        cost=None if cost is None else _parse_cost(_field(content, "cost", dict)),
        gaps=tuple(_gap(gap) for gap in _field(content, "gaps", list)),
        wall_history_ns=_optional(content, "wall_history_ns"),
        **_integers(content, ("from_ns", "to_ns", "wall_from_ns", "wall_to_ns")),
    )


def _pair(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"{value!r:.60} is not a pair")
    first, second = value
    if type(first) is int and type(second) is int and abs(first) < 2**63 and abs(second) < 2**63:
        return first, second  # the usual case at once
    numbers = _integers({"first": value[0], "second": value[1]}, ("first", "second"))
    return numbers["first"], numbers["second"]


def _parse_cost(content: JsonObject) -> RecorderCost:
    times = _integers(content, _COST_FIELDS[:2])
    known = tuple(name for name in _COST_FIELDS[2:] if content.get(name) is not None)
    others: dict[str, int | None] = dict.fromkeys(_COST_FIELDS[2:])
    others.update(_integers(content, known))
    first, last = times.values()
    return _without_zeros(RecorderCost(first, last, *others.values()))


def _gap(content: Any) -> Gap:
    if not isinstance(content, dict):
        raise TypeError("a gap is not an object")
    return Gap(
        from_ns=_field(content, "from_ns", int),
        to_ns=_field(content, "to_ns", int),
        source=_field(content, "source", str),
        cpu=_optional(content, "cpu"),
        lost=_optional(content, "lost"),
        reason=_field(content, "reason", str),
    )
