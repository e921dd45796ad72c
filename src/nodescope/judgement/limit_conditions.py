"""Limits that are nearly reached: file systems, tables of the kernel, tasks and memory of cgroups.

Nine tenths are worth a warning, 95 % are critical, and so is what reaches its limit within an
hour by how it grew. Memory of a cgroup counts only by its growth: page cache fills every
limit in time, and the kernel takes it back.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.judgement.cgroup_owners import CgroupOwners
from nodescope.judgement.condition import Condition, ConditionOwner, Severity
from nodescope.judgement.growth import Growth, describe_left, find_growth
from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS, format_bytes, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.node_tables import CgroupRow
from nodescope.records.view import Span, View
from nodescope.records.witness_tables import LimitRow

WARN_RATIO, CRITICAL_RATIO = 0.90, 0.95
SOON_RATIO = 0.70  # of a limit: less is too far off for a forecast to say much
SOON_NS = HOUR_NS
LEAST_OVER_NS = 5 * MINUTE_NS  # of what a forecast rests on
OLD_NS = 10 * MINUTE_NS  # a cgroup that was not read for so long is gone
RESTATED_NS = 150 * SECOND_NS  # every limit is written again with each segment of two minutes
_BY_DESIGN = ("/boot", "/efi")  # file systems that are filled once, nearly to the top
_SHOWN_BEFORE_NS = 10 * MINUTE_NS


@dataclass(frozen=True, slots=True)
class _Limit:
    """A limit of the table `limits`: its name in reports, what it counts, and what to do."""

    called: str
    of: str
    note: str
    kernel_value: str | None = None
    size: bool = False  # counted in bytes


_LIMITS = {
    "conntrack": _Limit("the table of tracked connections", "connections",
                        "or find out who opens so many", "net.netfilter.nf_conntrack_max"),
    "files": _Limit("the table of open files", "files", "or find out who leaks them",
                    "fs.file-max"),
    "threads": _Limit("the number of tasks", "tasks", "or find out who makes so many",
                      "kernel.pid_max"),
    "neighbours": _Limit("the neighbour table", "entries", "for a network of that size",
                         "net.ipv4.neigh.default.gc_thresh3"),
    "tcp_memory": _Limit("the memory of TCP", "pages", "or find out whose sockets hold it",
                         "net.ipv4.tcp_mem"),
    "disk": _Limit("file system", "bytes", "what grows there? deleted files may still be open",
                   size=True),
    "inodes": _Limit("inodes of file system", "inodes", "what makes so many files there?"),
    "pids": _Limit("tasks", "tasks", "what makes so many tasks?"),
}  # fmt: skip
_LOOKS = {"disk": "du -xh {} | sort -h | tail", "inodes": "du -x --inodes {} | sort -n | tail"}


@dataclass(frozen=True, slots=True)
class _Use:
    """How much of a limit is used, and how that grew."""

    name: str
    scope: str
    used: int
    most: int
    growth: Growth | None
    since_ns: int | None

    @property
    def ratio(self) -> float:
        return self.used / self.most

    def left_ns(self) -> tuple[int, int | None] | None:
        """Return the time until it is full, where it grows steadily and was watched long enough."""
        growth = self.growth
        if growth is None or not growth.steady or growth.over_ns < LEAST_OVER_NS:
            return None
        return growth.left_ns(self.most)

    def is_soon(self) -> bool:
        """Decide whether it is full within an hour, by how it grew."""
        left = self.left_ns()
        return self.ratio >= SOON_RATIO and left is not None and (left[1] or 2**62) <= SOON_NS


def find_limit_conditions(
    recording: Recording, at_ns: int, owners: CgroupOwners
) -> list[Condition]:
    """Return the limits that are nearly reached at a moment."""
    hour = Window(at_ns - HOUR_NS, at_ns + 1)
    listed: dict[tuple[str, str], list[LimitRow]] = defaultdict(list)
    for row in recording.rows(LimitRow, hour) + recording.state(LimitRow, at_ns):
        listed[row.name, row.scope].append(row)
    current = {(row.name, row.scope) for row in recording.state(LimitRow, at_ns)}
    found = []
    for key, rows in listed.items():
        rows.sort(key=lambda row: row.time_ns)
        if key not in current and at_ns - rows[-1].time_ns > RESTATED_NS:
            continue  # unmounted, or removed
        use = _use_of(rows)
        severity = None if use is None else _severity(use)
        if use is not None and severity is not None:
            found.append(_limit_condition(use, severity, at_ns, owners, recording.node_name))
    return found + _memory_conditions(recording, hour, owners)


def _use_of(rows: Sequence[LimitRow]) -> _Use | None:
    last = rows[-1]
    if last.used is None or not last.most or last.scope.startswith(_BY_DESIGN):
        return None
    known = [(row.time_ns, row.used) for row in rows if row.used is not None]
    below = [row.time_ns for row in rows
             if row.used is not None and row.used < WARN_RATIO * last.most]  # fmt: skip
    growth = find_growth([time_ns for time_ns, _ in known], [used for _, used in known])
    since = next((time_ns for time_ns, _ in known if below and time_ns > below[-1]), None)
    return _Use(last.name, last.scope, last.used, last.most, growth, since)


def _severity(use: _Use) -> Severity | None:
    if use.ratio >= CRITICAL_RATIO or use.is_soon():
        return "critical"
    return "warning" if use.ratio >= WARN_RATIO else None


def _limit_condition(
    use: _Use, severity: Severity, at_ns: int, owners: CgroupOwners, node: str
) -> Condition:
    limit = _LIMITS.get(use.name) or _Limit(use.name, "", "who uses it?")
    owner = _owner(use, owners, node)
    of = f"{owner.kind} {owner.name}: " if use.name == "pids" else ""
    where = f" {use.scope}" if use.name in ("disk", "inodes") else ""
    show = View("table", _before(at_ns), table="limits",
                where=(("name", use.name), ("scope", use.scope)))  # fmt: skip
    return Condition(
        kind=f"{use.name}_nearly_full",
        owner=owner,
        severity=severity,
        since_ns=use.since_ns,
        statement=f"{of}{limit.called}{where}: {use.ratio:.0%} used, {_amounts(use, limit)}",
        trend=_trend(use, limit),
        steps=(_step(use, limit, owner, show),),
        show=show,
    )


def _owner(use: _Use, owners: CgroupOwners, node: str) -> ConditionOwner:
    if use.name in ("disk", "inodes"):
        return ConditionOwner("file system", use.scope)
    return owners.find(use.scope) if use.scope.startswith("/") else ConditionOwner("node", node)


def _step(use: _Use, limit: _Limit, owner: ConditionOwner, show: View) -> Action:
    if limit.kernel_value is not None:
        return Action("raise_limit", Target("kernel_value", limit.kernel_value), note=limit.note)
    if use.name in _LOOKS:
        return Action(
            "look", Target("node"), _LOOKS[use.name].format(shlex.quote(use.scope)), limit.note
        )
    for kind in ("unit", "container", "pod"):
        if owner.kind == kind:
            return Action("look", Target(kind, owner.name), note=limit.note, view=show)
    return Action("look", Target("cgroup", use.scope), note=limit.note, view=show)


def _amounts(use: _Use, limit: _Limit) -> str:
    if limit.size:
        return f"{format_bytes(use.most - use.used)} of {format_bytes(use.most)} left"
    return f"{use.used:,} of {use.most:,} {limit.of}".rstrip()


def _trend(use: _Use, limit: _Limit) -> str:
    growth = use.growth
    if growth is None or growth.over_ns < MINUTE_NS:
        return ""
    over = format_duration(growth.over_ns)
    if growth.per_hour <= 0:
        return f"not growing over {over}"
    amount = growth.per_hour * growth.over_ns / HOUR_NS
    moved = format_bytes(amount) if limit.size else f"{amount:,.0f} {limit.of}".rstrip()
    left = use.left_ns()
    return f"grew by {moved} in {over}" + (
        "" if left is None else f"; full in {describe_left(*left)}"
    )


# -- memory of cgroups -----------------------------------------------------------------


def _memory_conditions(recording: Recording, hour: Window, owners: CgroupOwners) -> list[Condition]:
    at_ns = hour.to_ns - 1
    near = {row.cgroup for row in recording.state(CgroupRow, at_ns) if _is_near(row, at_ns)}
    if not near:
        return []  # of an hour's rows on a large node nobody needs to ask
    by_cgroup: dict[str, list[CgroupRow]] = defaultdict(list)
    for row in recording.rows(CgroupRow, hour):
        if row.cgroup in near and row.memory_bytes is not None:
            by_cgroup[row.cgroup].append(row)
    found = []
    for path, listed in by_cgroup.items():
        listed.sort(key=lambda row: row.time_ns)
        times, values = [row.time_ns for row in listed], [row.memory_bytes or 0 for row in listed]
        growth, most = find_growth(times, values), listed[-1].memory_limit_bytes or 0
        use = _Use("memory", path, values[-1], most, growth, None)
        if most and use.is_soon():
            found.append(_memory_condition(use, at_ns, owners))
    return found


def _is_near(row: CgroupRow, at_ns: int) -> bool:
    """Decide whether a cgroup uses so much of its limit that its growth matters."""
    most, used = row.memory_limit_bytes, row.memory_bytes
    return bool(most and used and used >= SOON_RATIO * most and at_ns - row.time_ns <= OLD_NS)


def _memory_condition(use: _Use, at_ns: int, owners: CgroupOwners) -> Condition:
    owner = owners.find(use.scope)
    show = View("table", _before(at_ns), table="cgroups", where=(("cgroup", use.scope),))
    used, most = format_bytes(use.used), format_bytes(use.most)
    return Condition(
        kind="memory_limit_near",
        owner=owner,
        severity="warning",
        since_ns=None,
        statement=f"memory of {owner.kind} {owner.name}: {used} of its limit {most}, page cache "
        "included",
        trend=_trend(use, _Limit("", "", "", size=True)).replace("; full in", "; at its limit in"),
        steps=(
            Action("look", Target("cgroup", use.scope), note="does it leak?", view=show),
            Action("raise_limit", Target("cgroup", use.scope)),
        ),
        show=show,
    )


def _before(at_ns: int) -> Span:
    return Span(at_ns - _SHOWN_BEFORE_NS, at_ns + 1)
