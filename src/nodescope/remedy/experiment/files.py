"""Nodes, plans and daily figures of experiments, read from files without trusting them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nodescope.errors import NodescopeError, UsageError
from nodescope.quantities import DAY_NS, HOUR_NS, SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.json import Json
from nodescope.remedy.experiment.design import Assignment, CandidateNode, ExperimentDesign
from nodescope.remedy.experiment.status import DayOfNode
from nodescope.remedy.proof.measure_series import NODE, read_series

_MOST_BYTES = 256 << 20
_Fields = Mapping[str, Json]


def read_nodes(path: Path) -> list[CandidateNode]:
    """Read the nodes that may take part."""
    rows = list(_read_table(path))
    return [
        CandidateNode(
            _text(row, "name", path, number),
            str(row.get("zone") or ""),
            _number(row, "boot_age_h", path, number),
            _whole(_number(row, "events", path, number)),
            _number(row, "node_hours", path, number),
        )
        for number, row in enumerate(rows, 1)
    ]


def read_exposures(path: Path) -> list[DayOfNode]:
    """Read what nodes did by day: a table, or a folder with a recording of each node."""
    if path.is_dir():
        return [day for recording in _recordings(path) for day in read_days(recording)]
    return [
        DayOfNode(
            _text(row, "node", path, number),
            _text(row, "day", path, number),
            _required_number(row, "node_hours", path, number),
            round(_required_number(row, "events", path, number)),
        )
        for number, row in enumerate(_read_table(path), 1)
    ]


def _required_number(row: _Fields, name: str, path: Path, number: int) -> float:
    """Return a number of a row; one that is missing is not 0."""
    found = _number(row, name, path, number)
    if found is None:
        raise UsageError(
            f"{path}: row {number} has no {name}",
            hint="the columns are node, day, node_hours, events",
        )
    return found


def read_design(path: Path) -> ExperimentDesign:
    """Read an experiment as `experiment plan --json` wrote it."""
    document = _parse_json(path)
    assigned = document.get("assignments") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(assigned, list):
        raise UsageError(
            f"{path} is not the plan of an experiment",
            hint="make one by `nodescope experiment plan --nodes nodes.json --json > plan.json`",
        )
    arms = document.get("arms")
    rows = [each for each in assigned if isinstance(each, Mapping)]
    return ExperimentDesign(
        tuple(str(each) for each in arms) if isinstance(arms, list) else (),
        _number(document, "ratio", path) or 0.2,
        _number(document, "power", path) or 0.8,
        _whole(_number(document, "seed", path)) or 0,
        tuple(
            Assignment(*(_text(row, name, path, number) for name in ("node", "stratum", "arm")))
            for number, row in enumerate(rows, 1)
        ),
        _number(document, "rate_per_h", path),
        _number(document, "rate_low", path),
        _number(document, "rate_high", path),
        _number(document, "control_events", path),
        _number(document, "hours_needed", path),
    )


# -- recordings ------------------------------------------------------------------------


def _recordings(folder: Path) -> Iterator[Recording]:
    """Yield the recordings in a folder; what is none is passed over, but not all of it."""
    found = False
    for path in sorted(folder.iterdir()):
        try:
            recording = Recording.open(path)
        except NodescopeError:
            continue
        found = True
        yield recording
    if not found:
        raise UsageError(f"{folder} has no recordings", hint="one archive or bundle per node")


def read_days(recording: Recording) -> Iterator[DayOfNode]:
    """Yield the observed hours and the resets of a recording, by day (UTC)."""
    extent = recording.extent
    first_ns = extent.from_ns // DAY_NS * DAY_NS
    for from_ns in range(first_ns, extent.to_ns, DAY_NS):
        window = Window(max(from_ns, extent.from_ns), min(from_ns + DAY_NS, extent.to_ns))
        series = read_series(recording, "resets", NODE, window)
        if series is None:
            continue
        day = datetime.fromtimestamp(from_ns / SECOND_NS, UTC).date().isoformat()
        hours = series.observed_s * SECOND_NS / HOUR_NS
        yield DayOfNode(recording.node_name, day, hours, round(series.count))


# -- tables ----------------------------------------------------------------------------


def _read_table(path: Path) -> Iterator[_Fields]:
    """Yield the rows of a CSV file with a header, or of a JSON list of objects."""
    content = _read(path)
    if content.lstrip()[:1] in ("[", "{"):
        document = _parse_json(path)
        rows = document if isinstance(document, list) else None
        if rows is None or not all(isinstance(each, Mapping) for each in rows):
            raise UsageError(f"{path} is not a list of objects")
        yield from (each for each in rows if isinstance(each, Mapping))
        return
    for row in csv.DictReader(io.StringIO(content)):
        yield {str(name).strip(): value for name, value in row.items() if isinstance(value, str)}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", hint="name a file that can be read"
        ) from error


def _parse_json(path: Path) -> Json:
    try:
        document: Json = json.loads(_read(path))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    return document


def _text(row: _Fields, name: str, path: Path, number: int) -> str:
    value = row.get(name)
    if not isinstance(value, str | int) or not str(value).strip():
        raise UsageError(f"{path}: row {number} has no {name}", hint="see docs/experiment.md")
    return str(value).strip()


def _number(row: _Fields, name: str, path: Path, number: int = 0) -> float | None:
    value = row.get(name)
    if value is None or value == "":
        return None
    try:
        parsed = float(value) if isinstance(value, str | int | float) else -1.0
    except ValueError:
        parsed = -1.0
    if not 0 <= parsed < 1e15:
        where = f"row {number}: " if number else ""
        raise UsageError(f"{path}: {where}{name} is not a number from 0 on: {value!r:.40}")
    return parsed


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
