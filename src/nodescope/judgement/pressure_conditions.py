"""Cgroups that their CPU limit throttles, and memory or disks that tasks wait for.

Throttling: a quarter of the periods over five minutes, as the alert `CPUThrottlingHigh` of
Kubernetes has it. Waiting is pressure (PSI) of kind *full*: nothing else ran meanwhile. One
copy of a large file keeps a quiet node waiting for its disk: that counts after five minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.judgement.cgroup_owners import CgroupOwners
from nodescope.judgement.condition import Condition, ConditionOwner
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.node_tables import CgroupRow, PressureRow
from nodescope.records.view import Span, View

LOOK_NS = 5 * MINUTE_NS
OLD_NS = 2 * MINUTE_NS  # what was not read for so long before the moment is over
THROTTLED_RATIO = 0.25
LEAST_THROTTLED_NS = 2 * MINUTE_NS  # of readings
LEAST_PERIODS = 300  # half a minute of periods of 100 ms: less was hardly running


@dataclass(frozen=True, slots=True)
class _Waits:
    """From when on waiting for a resource is a condition: which share, for how long."""

    ratio: float
    least_ns: int
    of_cgroups: bool
    words: str


_WAITS = {
    "memory": _Waits(0.10, MINUTE_NS, True, "for memory"),
    "io": _Waits(0.60, 290 * SECOND_NS, False, "for disks"),
}


def find_pressure_conditions(
    recording: Recording, at_ns: int, owners: CgroupOwners
) -> list[Condition]:
    """Return who is throttled and what is waited for at a moment."""
    window = Window(at_ns - LOOK_NS, at_ns + 1)
    throttled = _throttled(recording.rows(CgroupRow, window), at_ns, owners)
    return throttled + _waiting(recording, window, owners)


# -- throttled ---------------------------------------------------------------------


def _throttled(rows: Iterable[CgroupRow], at_ns: int, owners: CgroupOwners) -> list[Condition]:
    by_cgroup: dict[str, list[CgroupRow]] = defaultdict(list)
    for row in rows:
        if row.periods is not None and row.throttled is not None:
            by_cgroup[row.cgroup].append(row)
    found = []
    for path, listed in by_cgroup.items():
        first, last = (pick(listed, key=lambda row: row.time_ns) for pick in (min, max))
        over_ns = last.time_ns - first.time_ns
        periods = (last.periods or 0) - (first.periods or 0)
        times = (last.throttled or 0) - (first.throttled or 0)
        long = over_ns >= LEAST_THROTTLED_NS and at_ns - last.time_ns <= OLD_NS
        if long and periods >= LEAST_PERIODS and times >= THROTTLED_RATIO * periods:
            lost_us = (last.throttled_us or 0) - (first.throttled_us or 0)
            share = times / periods
            found.append(_throttled_condition(path, share, over_ns, lost_us, at_ns, owners))
    return found


def _throttled_condition(
    path: str, share: float, over_ns: int, lost_us: int, at_ns: int, owners: CgroupOwners
) -> Condition:
    owner = owners.find(path)
    show = View("table", Span(at_ns - LOOK_NS, at_ns + 1), table="cgroups",
                where=(("cgroup", path),))  # fmt: skip
    over = format_duration(over_ns)
    lost = f"; it waited {format_duration(lost_us * 1000)} for CPU time" if lost_us > 0 else ""
    return Condition(
        kind="cpu_throttled",
        owner=owner,
        severity="warning",
        since_ns=None,
        statement=f"{owner.kind} {owner.name} is throttled by its CPU limit in {share:.0%} of the "
        f"periods{lost}",
        trend=f"over the last {over}",
        steps=(
            Action("look", Target("cgroup", path), view=show,
                   note="raise its CPU limit, or let it run fewer threads"),
        ),
        show=show,
    )  # fmt: skip


# -- waiting -----------------------------------------------------------------------


def _waiting(recording: Recording, window: Window, owners: CgroupOwners) -> list[Condition]:
    rows: dict[tuple[str, str], list[PressureRow]] = defaultdict(list)
    for row in recording.rows(PressureRow, window):
        waits = _WAITS.get(row.resource)
        if row.full_us is not None and waits is not None and (waits.of_cgroups or not row.cgroup):
            rows[row.cgroup, row.resource].append(row)
    found = []
    for (path, resource), listed in rows.items():
        first, last = (pick(listed, key=lambda row: row.time_ns) for pick in (min, max))
        over_ns = last.time_ns - first.time_ns
        waits = _WAITS[resource]
        if over_ns < waits.least_ns or window.to_ns - last.time_ns > OLD_NS:
            continue
        share = ((last.full_us or 0) - (first.full_us or 0)) * 1000 / over_ns
        if share >= waits.ratio:
            owner = owners.find(path) if path else ConditionOwner("node", recording.node_name)
            found.append(_waiting_condition(owner, (path, resource), share, over_ns, window))
    return _innermost(found)


def _waiting_condition(
    owner: ConditionOwner, of: tuple[str, str], share: float, over_ns: int, window: Window
) -> Condition:
    path, resource = of
    whose = "all tasks" if owner.kind == "node" else f"all tasks of {owner.kind} {owner.name}"
    show = View("table", Span(window.from_ns, window.to_ns), table="pressure",
                where=(("cgroup", path), ("resource", resource)))  # fmt: skip
    target = Target("cgroup", path) if path else Target("node")
    note = "who uses so much memory?" if resource == "memory" else "who reads or writes so much?"
    return Condition(
        kind=f"{resource}_pressure",
        owner=owner,
        severity="warning",
        since_ns=None,
        statement=f"{whose} waited {_WAITS[resource].words} {share:.0%} of the time",
        trend=f"over the last {format_duration(over_ns)}",
        steps=(Action("look", target, note=note, view=show),),
        show=show,
    )


def _innermost(found: list[Condition]) -> list[Condition]:
    """Leave out the node where one of its own is named, and what has the same owner twice."""
    kept: dict[tuple[str, ConditionOwner], Condition] = {}
    named = {each.kind for each in found if each.owner.kind in ("unit", "container", "pod")}
    for each in found:
        if each.owner.kind not in ("node", "cgroup") or each.kind not in named:
            kept.setdefault((each.kind, each.owner), each)
    return list(kept.values())
