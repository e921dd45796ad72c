"""When a plan was applied, and whether it still stands: by its journal, or as recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event_details import FixStepDetails
from nodescope.records.json import Json, JsonObject
from nodescope.remedy.journal import SUFFIX, checked_id
from nodescope.wall_time import format_moment


@dataclass(frozen=True, slots=True)
class Applied:
    """From when to when the steps were taken."""

    begun_ns: int
    at_ns: int  # the end of the last step
    undone: str = ""  # why the plan is not in force; empty: it is


def read_applied(folder: Path, plan: str) -> Applied:
    """Read a plan from the folder of journals; `UsageError` if it was never applied."""
    path = folder / f"{checked_id(plan)}{SUFFIX}"
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            f"plan {plan} was not applied here: there is no {path}",
            hint="`nodescope fix apply` applies it; `--applied WHEN` names the time if somebody "
            "else did",
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="the journal is root's") from error
    return parse_applied(content, str(path))


def find_applied(recording: Recording, plan: str) -> Applied | None:
    """Return when the steps of a plan were taken, as recorded; None if they were not."""
    extent = recording.extent
    events = recording.events(Window(extent.from_ns, extent.to_ns), "fix_step")
    steps = [(each.time_ns, each.get(FixStepDetails)) for each in events]
    mine = [(time_ns, told.outcome) for time_ns, told in steps if told.plan == plan]
    done = [time_ns for time_ns, outcome in mine if outcome == "applied"]
    if not done:
        return None
    undone = [time_ns for time_ns, outcome in mine if outcome == "undone" and time_ns > done[-1]]
    words = f"the plan was undone at {format_moment(undone[0])}" if undone else ""
    return Applied(done[0], done[-1], words)


def parse_applied(content: bytes, path: str = "the journal") -> Applied:
    """Return the times of a journal's lines; a torn last line is left out."""
    begun: list[int] = []
    ended: dict[tuple[int, int], int] = {}
    undone_ns: int | None = None
    failed = ""
    for kind, step, time_ns in _records(content):
        if kind == "intent":
            begun.append(time_ns)
            failed, undone_ns = "", None
        elif kind == "done":
            ended[step] = time_ns
            failed = ""
        elif kind == "failed":
            failed = f"step {step[0]} failed at {format_moment(time_ns)}"
        elif kind in ("undoing", "undone"):
            undone_ns = time_ns
    if not begun or (not ended and undone_ns is None):
        raise UsageError(
            f"{path}: no step was completed", hint="`nodescope fix status` shows what happened"
        )
    at_ns = max(ended.values(), default=begun[-1])
    undone = failed
    if undone_ns is not None:
        undone = f"the plan was undone at {format_moment(undone_ns)}"
    return Applied(begun[0], at_ns, undone)


def _records(content: bytes) -> Iterator[tuple[str, tuple[int, int], int]]:
    """Yield the kind, the step with its attempt, and the time of each line."""
    for line in content.splitlines():
        try:
            document: Json = json.loads(line)
        except ValueError:
            return  # torn: whatever it was about was not done
        record = document.get("record") if isinstance(document, dict) else None
        if isinstance(record, dict):
            step = _number(record, "number"), _number(record, "attempt")
            yield str(record.get("kind")), step, _number(record, "wall_ns")


def _number(record: JsonObject, name: str) -> int:
    value = record.get(name)
    return value if isinstance(value, int) else 0
