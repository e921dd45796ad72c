"""Zombie memory cgroups as a condition: how many, how fast they grow, when it gets critical."""

from __future__ import annotations

from nodescope.judgement.cgroup_owners import CgroupOwners
from nodescope.judgement.condition import Condition, ConditionOwner, Severity
from nodescope.judgement.growth import Growth, describe_left, find_growth
from nodescope.judgement.zombie_reading import read_dying
from nodescope.judgement.zombie_report import FORECAST_NS, Report, assess_recorded
from nodescope.quantities import DAY_NS, HOUR_NS, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.view import Moment, View

_MAIN = 0.5  # of all zombies: the parent of so many names the owner


def find_zombie_conditions(
    recording: Recording, at_ns: int, owners: CgroupOwners
) -> list[Condition]:
    """Return the condition of zombies at a moment, if there are many, or soon will be."""
    report = assess_recorded(recording, at_ns)
    if not isinstance(report, Report) or report.reading.dying is None:
        return []
    counted = read_dying(recording, Window(at_ns - HOUR_NS, at_ns + 1))
    growth = find_growth([time_ns for time_ns, _ in counted], [dying for _, dying in counted])
    severity = _severity(report, growth)
    if severity is None:
        return []
    owner = _owner(report, owners, recording.node_name)
    look = View("zombies", Moment(at_ns))
    return [
        Condition(
            kind="zombies",
            owner=owner,
            severity=severity,
            since_ns=_since_ns(counted, report.verdict.warn_at),
            statement=_statement(report, owner),
            trend=_trend(report, growth),
            steps=(
                Action("stop_leak", value="leaves them behind", view=look),
                Action("free_zombies", Target("node"), view=View("zombies")),
            ),
            show=look,
        )
    ]  # fmt: skip


def _severity(report: Report, growth: Growth | None) -> Severity | None:
    level = report.verdict.level
    if level == "critical":
        return "critical"
    left = _left(report, growth)
    if left is not None and left[0] <= HOUR_NS and level == "warn":
        return "critical"
    if level == "warn":
        return "warning"
    # Fewer than would be warned of: a leak that was watched for an hour, and its end is near.
    near = left is not None and left[1] is not None and left[1] <= DAY_NS
    return "warning" if near and report.nature == "leak" else None


def _left(report: Report, growth: Growth | None) -> tuple[int, int | None] | None:
    if growth is None or growth.over_ns < FORECAST_NS or not growth.steady:
        return None
    return growth.left_ns(report.verdict.critical_at)


def _statement(report: Report, owner: ConditionOwner) -> str:
    dying, critical = report.reading.dying or 0, report.verdict.critical_at
    where = "" if owner.kind == "node" else f", most of them below {owner.kind} {owner.name}"
    others = [each for each in report.verdict.reasons if not each.endswith(" dying")]
    more = f"; {', '.join(others)}" if others else ""
    return f"{dying:,} zombie memory cgroups (critical from {critical:,}){where}{more}"


def _trend(report: Report, growth: Growth | None) -> str:
    if growth is None:
        return ""
    over = format_duration(growth.over_ns)
    if growth.over_ns < FORECAST_NS:
        moved = round(growth.per_hour * growth.over_ns / HOUR_NS)
        return f"{moved:+,} in {over}, too short for a forecast"
    if growth.per_hour <= 0:
        return f"not growing over {over}"
    rate = f"growing by {growth.per_hour:,.0f} an hour ({growth.low:,.0f} to {growth.high:,.0f})"
    left = growth.left_ns(report.verdict.critical_at)
    return rate if left is None else f"{rate}; critical in {describe_left(*left)}"


def _since_ns(counted: list[tuple[int, int]], warn_at: int) -> int | None:
    """Return when the warning threshold was first passed, if that was recorded in the last hour."""
    above = [dying >= warn_at for _, dying in counted]
    if not any(above) or above[0]:
        return None
    return counted[above.index(True)][0]


def _owner(report: Report, owners: CgroupOwners, name: str) -> ConditionOwner:
    """Return whose cgroup most of them lie below; the node, if it is nobody's."""
    parents = report.reading.parents
    total = sum(each.dying or 0 for each in parents)
    main = max(parents, key=lambda each: each.dying or 0, default=None)
    node = ConditionOwner("node", name)
    if main is None or not total or (main.dying or 0) < _MAIN * total:
        return node
    found = owners.find(main.path)
    return node if found.kind in ("node", "cgroup") else found
