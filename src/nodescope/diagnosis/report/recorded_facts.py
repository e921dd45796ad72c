"""What a recording knew of zombies and of units at one moment: `zombies --at`, `audit --at`.

Evidence must be seen as it was. What the machine says now is another day's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodescope.diagnosis.case import Case
from nodescope.pictures.text import iso, visible
from nodescope.records.node import UnitRow

_UNIT = (
    "unit", "active", "sub", "result", "starts", "failures", "successes", "restarts",
    "file_state", "preset", "vendor", "wanted_by", "why_not_started", "cgroup",
)  # fmt: skip


Document = dict[str, Any]


# -- units -------------------------------------------------------------------


def read_recorded_units(case: Case, at_ns: int, names: Sequence[str]) -> list[Document]:
    """Units as last known before a moment, by name: those asked for, or all."""
    rows = [row for row in case.state(UnitRow, at_ns) if not names or row.unit in names]
    return [
        {"at": iso(row.time_ns), **{name: getattr(row, name) for name in _UNIT}}
        for row in sorted(rows, key=lambda row: str(row.unit))
    ]


def render_recorded_units(units: Sequence[Document]) -> str:
    """A paragraph for each."""
    return "\n".join(line for unit in units for line in _unit(unit))


def _unit(unit: Document) -> list[str]:
    starts, failures, successes, restarts = (
        _number(unit[name]) for name in ("starts", "failures", "successes", "restarts")
    )
    enabled = f"{unit['file_state'] or 'no unit file'}; preset: {unit['preset'] or 'none'}"
    origin = f"from {unit['vendor'] or 'nobody known'}; wanted by {unit['wanted_by'] or 'nothing'}"
    result = f", last result {unit['result']}" if unit["result"] else ""
    ends = f"failures {failures}, successes {successes}, restarts {restarts}"
    facts = [
        f"as recorded at {unit['at']}: {unit['active']} ({unit['sub']}){result}",
        f"since boot: starts {starts}, {ends}",
        f"{enabled}; {origin}",
    ]
    if unit["why_not_started"] and unit["why_not_started"] != "started":
        facts.append(f"not started: {unit['why_not_started']}")
    if unit["cgroup"]:
        facts.append(f"cgroup: {unit['cgroup']}")
    return [f"unit {visible(unit['unit'])}", *(f"  {visible(fact, 4096)}" for fact in facts)]


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
