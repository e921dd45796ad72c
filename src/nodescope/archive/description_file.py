"""`segment.json`: the description of a segment as it lies on disk; nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from nodescope.archive.description import (
    COST_FIELDS,
    Description,
    RecorderCost,
    Start,
    TableExtent,
    wall_extent,
    without_zeros,
)
from nodescope.archive.files import SEGMENT_FILE, read_json
from nodescope.archive.layout import FORMAT, check_format
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat
from nodescope.quantities import SECOND_NS
from nodescope.records import TABLES
from nodescope.records.json import JsonObject
from nodescope.records.recorder_tables import Gap

LONGEST_FLUSH_NS = 600 * SECOND_NS  # more than anybody lets a recorder wait before it writes

Value = TypeVar("Value")


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
    return _without_future(
        Description(
            start=_start(_field(content, "start", dict)),
            clock=clock,
            tables=tables,
            cost=None if cost is None else _parse_cost(_field(content, "cost", dict)),
            gaps=tuple(_gap(gap) for gap in _field(content, "gaps", list)),
            wall_history_ns=_optional(content, "wall_history_ns"),
            **_integers(content, ("from_ns", "to_ns", "wall_from_ns", "wall_to_ns")),
        )
    )


def _without_future(description: Description) -> Description:
    """Return a segment that ends where its recorder did.

    Earlier versions let a mark in the future stretch a segment to it. In a bundle what was
    recorded may end a flush after the last heartbeat: nothing longer is possible.
    """
    cost = description.cost
    if cost is None or not cost.is_recorders:
        return description
    if description.to_ns <= cost.time_last_ns + LONGEST_FLUSH_NS:
        return description
    last = max(cost.time_last_ns, description.from_ns)
    wall_from, wall_to = wall_extent(description.clock, description.from_ns, last)
    return replace(description, to_ns=last, wall_from_ns=wall_from, wall_to_ns=wall_to)


def _pair(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"{value!r:.60} is not a pair")
    first, second = value
    if type(first) is int and type(second) is int and abs(first) < 2**63 and abs(second) < 2**63:
        return first, second  # the usual case at once
    numbers = _integers({"first": value[0], "second": value[1]}, ("first", "second"))
    return numbers["first"], numbers["second"]


def _parse_cost(content: JsonObject) -> RecorderCost:
    times = _integers(content, COST_FIELDS[:2])
    known = tuple(name for name in COST_FIELDS[2:] if content.get(name) is not None)
    others: dict[str, int | None] = dict.fromkeys(COST_FIELDS[2:])
    others.update(_integers(content, known))
    first, last = times.values()
    return without_zeros(RecorderCost(first, last, *others.values()))


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
