"""Units and what happened to them as rows and events of the archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodescope.recorder.observation import Event
from nodescope.sources.systemd.happenings import UnitHappening
from nodescope.sources.systemd.lives import Life
from nodescope.sources.systemd.unit import Unit

_FROM_UNIT = (
    "load",
    "active",
    "sub",
    "result",
    "restarts",
    "main_pid",
    "exit_code",
    "exit_status",
    "file_state",
    "preset",
    "vendor",
    "why_not_started",
    "cgroup",
)


def unit_row(unit: Unit, life: Life | None) -> dict[str, Any]:
    """A row of `units`, but for its time."""
    row = {name: value for name in _FROM_UNIT if (value := getattr(unit, name)) is not None}
    if unit.exit_code is None:
        row.pop("exit_status", None)  # 0 until a process ended: not a status
    if unit.wanted_by:
        row["wanted_by"] = " ".join(unit.wanted_by)
    if life is not None:
        row |= {
            "starts": life.starts,
            "failures": life.failures,
            "successes": life.successes,
        }
        if unit.active is None:
            row |= _from_journal(life)
    return {"unit": unit.name, **row}


def _from_journal(life: Life) -> dict[str, Any]:
    """How the last run ended and which restart it was, where the journal alone tells."""
    row: dict[str, Any] = {} if life.counter is None else {"restarts": life.counter}
    last = life.last
    if last is not None and last.exit_code is not None:
        row |= {"exit_code": last.exit_code, "exit_status": last.exit_status}
        if last.result is not None:
            row["result"] = last.result
    return row


def event_of(happening: UnitHappening) -> Event:
    """A happening as an event."""
    details = {key: value for key, value in happening.details.items() if value is not None}
    return Event(
        happening.time_us * 1000,
        f"unit_{happening.kind}",
        happening.unit,
        _MESSAGES[happening.kind](details),
        details=details,
        loud=happening.kind == "loop",
    )


def _end(details: Mapping[str, Any]) -> str:
    code, status = details.get("exit_code"), details.get("exit_status")
    if code is None:
        return ""
    if code == "exited":
        return f"exit code {status}"
    return f"{code} by signal {status}"


def _exit_message(details: Mapping[str, Any]) -> str:
    ran = details.get("ran_s")
    lasted = "" if ran is None else f" after {ran:g} s"
    return f"its main process ended{lasted}: {_end(details) or 'nobody knows how'}"


def _restart_message(details: Mapping[str, Any]) -> str:
    count = details.get("restarts")
    number = "" if count is None else f", number {count}"
    end = _end(details)
    return f"started again{number}" + (f" after {end}" if end else "")


def _loop_message(details: Mapping[str, Any]) -> str:
    count = details.get("restarts")
    number = "" if count is None else f", {count} restarts so far"
    end = _end(details)
    return f"restarts over and over{number}" + (f", {end}" if end else "")


_MESSAGES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "started": lambda _: "started",
    "exit": _exit_message,
    "failed": lambda details: f"failed: {details.get('result', 'for no reason told')}",
    "restart": _restart_message,
    "loop": _loop_message,
    "start_failed": lambda details: f"could not be started: {details.get('result', 'failed')}",
}
