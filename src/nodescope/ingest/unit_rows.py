"""Units as rows of `units`."""

from __future__ import annotations

from typing import Any

from nodescope.sources.systemd.lives import Life
from nodescope.sources.systemd.unit import Unit

_FROM_UNIT = (
    "load",
    "active",
    "sub",
    "result",
    "restarts",
    "main_pid",
    "exit_kind",
    "exit_status",
    "file_state",
    "preset",
    "vendor",
    "why_not_started",
    "cgroup",
)


def unit_row(unit: Unit, life: Life | None) -> dict[str, Any]:
    """Return a row of `units`, but for its time."""
    row = {name: value for name in _FROM_UNIT if (value := getattr(unit, name)) is not None}
    if unit.exit_kind is None:
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
    """Return how the last run ended and which restart it was, where only the journal tells."""
    row: dict[str, Any] = {} if life.counter is None else {"restarts": life.counter}
    last = life.last
    if last is not None and last.exit_kind is not None:
        row |= {"exit_kind": last.exit_kind, "exit_status": last.exit_status}
        if last.result is not None:
            row["result"] = last.result
    return row
