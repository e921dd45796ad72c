"""Units and containers that loop, fail or are held back: what `audit` says, as conditions.

Every verdict of `audit_recording` but `unused` becomes one condition, and none comes from
elsewhere, so that `audit --at` and `diagnose` agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodescope.judgement.cgroup_owners import pod_owner
from nodescope.judgement.condition import Condition, ConditionOwner
from nodescope.judgement.loop_rules import ENDS_WITHIN_NS, UNIT_WITHIN_NS
from nodescope.judgement.recorded_audit import RecordedAudit, audit_recording
from nodescope.judgement.remedy_targets import stop_container, stop_unit
from nodescope.judgement.verdict import AuditVerdict
from nodescope.quantities import SECOND_NS, format_count, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.event import Event
from nodescope.records.event_details import ContainerDetails, UnitRunDetails
from nodescope.records.json import Json
from nodescope.records.view import Moment, View

# By what is judged and its verdict: the kind of condition, its words, the events that begin it.
_KINDS: dict[tuple[str, str], tuple[str, str, tuple[str, ...]]] = {
    ("unit", "looping"): ("unit_loop", "loops: ", ("unit_restart",)),
    ("unit", "hidden_loop"): (
        "unit_hidden_loop", "", ("unit_hidden_loop", "unit_logs_ends"),
    ),
    ("unit", "failing"): ("unit_failed", "", ("unit_failed",)),
    ("unit", "never_succeeded"): ("unit_never_succeeded", "", ("unit_failed",)),
    ("unit", "held_back"): ("unit_held_back", "", ("unit_start_failed",)),
    ("container", "looping"): (
        "container_loop", "loops: ", ("container_started", "container_restart"),
    ),
    ("container", "failing"): ("container_failed", "", ("container_exit",)),
    ("container", "never_succeeded"): (
        "container_never_succeeded", "", ("container_exit",),
    ),
}  # fmt: skip
_LOOPS = ("looping", "hidden_loop")


def find_service_conditions(recording: Recording, at_ns: int) -> list[Condition]:
    """Return the conditions of units and containers at a moment, as the audit has them."""
    known = audit_recording(recording, at_ns)
    if not isinstance(known, RecordedAudit):
        return []
    judged = [each for each in known.audit.findings if (each.kind, each.verdict) in _KINDS]
    if not judged:
        return []
    begins = {kind for *_, kinds in _KINDS.values() for kind in kinds}
    lately = Window(at_ns - ENDS_WITHIN_NS, at_ns + 1)
    events = recording.events(lately, *begins)
    watched_ns = recording.coverage("units", Window(at_ns - UNIT_WITHIN_NS, at_ns)).observed_ns
    return [_condition(each, known, events, watched_ns) for each in judged]


def _condition(
    verdict: AuditVerdict, known: RecordedAudit, events: Iterable[Event], watched_ns: int
) -> Condition:
    kind, words, begins = _KINDS[verdict.kind, verdict.verdict]
    owner = _owner(verdict, known)
    show = View("audit", Moment(known.at_ns))
    if verdict.kind == "unit":
        show = View("audit", Moment(known.at_ns), unit=verdict.name)
    return Condition(
        kind=kind,
        owner=owner,
        severity="warning",
        since_ns=_since_ns(verdict, events, begins),
        statement=f"{owner.name} {words}{verdict.reason}",
        trend=_trend(verdict, watched_ns),
        steps=_steps(verdict, known, show),
        show=show,
    )


def _owner(verdict: AuditVerdict, known: RecordedAudit) -> ConditionOwner:
    if verdict.kind == "unit":
        return ConditionOwner("unit", verdict.name)
    for container in known.containers:
        if container.pod and container.subject == verdict.name:
            return pod_owner(container.namespace, container.pod, container.name)
    return ConditionOwner("container", verdict.name)


def _since_ns(
    verdict: AuditVerdict, events: Iterable[Event], begins: tuple[str, ...]
) -> int | None:
    """Return when it began, if that was recorded: a counter tells of rounds before the first."""
    mine = [event for event in events if event.kind in begins and _is_of(event, verdict)]
    if not mine:
        return None
    if verdict.verdict == "failing":
        return mine[-1].time_ns
    first = mine[0]
    before = first.get(UnitRunDetails).restarts
    if verdict.kind == "container":
        before = (first.get(ContainerDetails).restarts or 0) + 1
    return None if verdict.verdict == "looping" and (before or 1) > 1 else first.time_ns


def _is_of(event: Event, verdict: AuditVerdict) -> bool:
    if event.subject == verdict.name:
        return True
    if verdict.kind != "container":
        return False
    told = event.get(ContainerDetails)
    return (
        f"{told.namespace or '?'}/{told.pod}/{told.name}" == verdict.name
        if told.pod
        else (told.image == verdict.name)
    )


def _trend(verdict: AuditVerdict, watched_ns: int) -> str:
    """Return how often it loops, in the time that was recorded; "" where nothing moves."""
    evidence = verdict.evidence
    if verdict.verdict not in _LOOPS:
        return ""
    if recent := evidence.get("restarts_in_10_min"):
        times = format_count(int(str(recent)), "restart")
        # A journal may reach further back than the recorder: then the restarts themselves say.
        over_ns = max(watched_ns, _span_ns(evidence))
        return f"{times} in {format_duration(over_ns)}" if over_ns else times
    if (starts := evidence.get("starts")) and evidence.get("per_minute") is not None:
        return f"{starts} starts, {evidence['per_minute']:g} per minute"
    return "goes on"


def _span_ns(evidence: Mapping[str, Json]) -> int:
    """Return the time from the first restart that was seen to the last."""
    recent, every_s = evidence.get("restarts_in_10_min"), evidence.get("every_s")
    if not isinstance(recent, int) or not isinstance(every_s, int | float):
        return 0
    return round((recent - 1) * every_s * SECOND_NS)


def _steps(verdict: AuditVerdict, known: RecordedAudit, show: View) -> tuple[Action, ...]:
    name = verdict.name if verdict.kind == "unit" else _container_name(verdict, known)
    target = Target("unit" if verdict.kind == "unit" else "container", name)
    if verdict.verdict == "held_back":
        note = "does the node need it? then provide what it waits for"
        return (Action("look", target, note=note, view=show),)
    look = Action("look", target, note="why does it end, and who needs it?", view=show)
    if verdict.verdict not in _LOOPS:
        return (look,)
    if verdict.kind == "unit":
        return look, stop_unit(known.units, verdict.name)
    mine = [each for each in known.containers if each.subject == verdict.name]
    return look, stop_container(mine, name)


def _container_name(verdict: AuditVerdict, known: RecordedAudit) -> str:
    mine = (each.name for each in known.containers if each.subject == verdict.name)
    return next(filter(None, mine), verdict.name)
