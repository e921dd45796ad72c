"""What a recording knew of zombies and of units at one moment: `zombies --at`, `audit --at`.

Evidence must be seen as it was. What the machine says now is another day's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from nodescope.diagnosis.case import Case
from nodescope.pictures.text import columns_of, pad, visible
from nodescope.quantities import format_bytes
from nodescope.records.node import DyingParentRow, MemoryCgroupsRow, UnitRow
from nodescope.wall_time import format_moment

_FEW = 5
_UNIT = (
    "unit", "active", "sub", "result", "starts", "failures", "successes", "restarts",
    "file_state", "preset", "vendor", "wanted_by", "why_not_started", "cgroup",
)  # fmt: skip
_KINDS = {"shmem": "tmpfs", "file": "page cache", "anon": "anonymous"}

Document = dict[str, Any]


# -- zombies -----------------------------------------------------------------


def read_recorded_zombies(case: Case, at_ns: int) -> Document | None:
    """Memory cgroups as last looked at before a moment; None if nobody did."""
    looks = case.state(MemoryCgroupsRow, at_ns)
    if not looks:
        return None
    last = max(looks, key=lambda row: row.time_ns)
    return {
        "at": format_moment(last.time_ns),
        **{name: getattr(last, name) for name in ("version", "tracked", "visible", "dying")},
        "parents": _parents(case.state(DyingParentRow, at_ns)),
    }


def _parents(rows: Sequence[DyingParentRow]) -> list[Document]:
    dying: dict[str, int | None] = {}
    held: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        path = row.path
        dying[path] = max(filter(None, (dying.get(path), row.dying)), default=None)
        if row.kind and row.held_bytes:
            held[path][row.kind] = row.held_bytes
    parents = [
        {"path": path, "dying": number, "held": held[path]} for path, number in dying.items()
    ]
    return sorted(parents, key=_weight)


def _weight(parent: Document) -> tuple[int, int, str]:
    return -(parent["dying"] or 0), -sum(parent["held"].values()), parent["path"]


def render_recorded_zombies(found: Document, *, all_parents: bool) -> str:
    """As `nodescope zombies` says it, without a verdict or advice: that needs the machine."""
    tracked, seen, dying = (_number(found[name]) for name in ("tracked", "visible", "dying"))
    counts = f"tracked {tracked}, visible {seen}, dying {dying}   (cgroup {found['version']})"
    lines = [f"as recorded at {found['at']}: {counts}"]
    parents = found["parents"]
    shown = parents if all_parents else parents[:_FEW]
    if shown:
        lines += ["", *_table(shown)]
    if len(parents) > len(shown):
        lines.append(f"{'':>9}  … {len(parents) - len(shown)} more: --parents")
    return "\n".join(lines)


def _table(parents: Sequence[Document]) -> list[str]:
    names = [visible(each["path"]) for each in parents]
    width = max(columns_of(name) for name in ["parent", *names])
    lines = [f"{'dying':>9}  {pad('parent', width)}  held by them"]
    for each, name in zip(parents, names, strict=True):
        kinds = sorted(each["held"].items(), key=lambda item: -item[1])
        held = ", ".join(f"{_KINDS.get(kind, kind)} {format_bytes(size)}" for kind, size in kinds)
        lines.append(f"{_number(each['dying']):>9}  {pad(name, width)}  {held}".rstrip())
    return lines


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


# -- units -------------------------------------------------------------------


def read_recorded_units(case: Case, at_ns: int, names: Sequence[str]) -> list[Document]:
    """Units as last known before a moment, by name: those asked for, or all."""
    rows = [row for row in case.state(UnitRow, at_ns) if not names or row.unit in names]
    return [
        {"at": format_moment(row.time_ns), **{name: getattr(row, name) for name in _UNIT}}
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
