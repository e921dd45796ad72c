"""Reports that come again and again: hardware that corrects itself, unreaped processes, clocks.

One report of such a kind is no condition yet: `_RULES` says how many within the last hour are.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from nodescope.judgement.cgroup_owners import CgroupOwners
from nodescope.judgement.condition import Condition, ConditionOwner
from nodescope.quantities import HOUR_NS, MINUTE_NS, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.event import Event
from nodescope.records.event_details import CounterDetails
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.trouble_details import HardwareDetails, ReapingDetails
from nodescope.records.view import Span, View

WITHIN_NS = HOUR_NS
OVER_AFTER_NS = 30 * MINUTE_NS  # what is reported each time, and was not for so long, is over


@dataclass(frozen=True, slots=True)
class _Rule:
    """From how many reports of a kind on it is a condition, whose it is, and what to do."""

    least: int
    owner: str
    note: str


_DEVICE = "the hardware corrects it for now: plan its replacement before it no longer can"
_RULES = {
    "edac_ce": _Rule(3, "device", _DEVICE),
    "mce_corrected": _Rule(3, "device", _DEVICE),
    "pcie_corrected": _Rule(3, "device", _DEVICE),
    "hw_corrected": _Rule(3, "device", _DEVICE),
    "disk_failing": _Rule(1, "device", "copy what is on it, then replace it"),
    "gpu_memory_retired": _Rule(1, "device", "reset the GPU when it is idle"),
    "rdma_errors": _Rule(3, "device", "one port: its cable; several: the switch"),
    "cpu_hot": _Rule(3, "device", "cooling, or a limit of power"),
    "netdev_stuck": _Rule(3, "device", "only a reboot frees it"),
    "clock_unsynchronized": _Rule(1, "node", "which service sets the clock, and whom does it ask?"),
    "process_zombies": _Rule(1, "process", "its parent does not reap: restart that, or give it "
                             "an init"),
    "neighbour_full": _Rule(1, "node", "raise net.ipv4.neigh.default.gc_thresh3"),
    "syn_queue_full": _Rule(1, "node", "who listens there, and does it accept?"),
    "runtime_failing": _Rule(3, "node", "what does the runtime report?"),
    "disk_slow": _Rule(3, "node", "which disk, and who uses it?"),
    "process_crash": _Rule(3, "process", "what does its core dump show?"),
}  # fmt: skip


def find_reported_conditions(
    recording: Recording, at_ns: int, owners: CgroupOwners
) -> list[Condition]:
    """Return what was reported often enough in the hour before a moment, and lately."""
    events: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in recording.events(Window(at_ns - WITHIN_NS, at_ns + 1), *_RULES):
        events[event.kind, event.subject].append(event)
    return [
        _condition(kind, listed, at_ns, owners, recording.node_name)
        for (kind, _), listed in events.items()
        if len(listed) >= _RULES[kind].least
        and (_RULES[kind].least == 1 or at_ns - listed[-1].time_ns <= OVER_AFTER_NS)
    ]


def _condition(
    kind: str, events: list[Event], at_ns: int, owners: CgroupOwners, node: str
) -> Condition:
    rule, first, last = _RULES[kind], events[0], events[-1]
    owner = _owner(rule.owner, last, owners, node)
    words = EVENT_KINDS[kind].help
    show = View("events", Span(first.time_ns - MINUTE_NS, at_ns + 1), kinds=(kind,))
    named = "" if owner.kind == "node" else f"{owner.kind} {owner.name}: "
    return Condition(
        kind=kind,
        owner=owner,
        severity="warning",
        since_ns=first.time_ns,
        statement=f"{named}{words}; {last.message}" if last.message else f"{named}{words}",
        trend=_trend(events),
        steps=(Action("look", Target("node"), note=rule.note, view=show),),
        show=show,
    )


def _trend(events: list[Event]) -> str:
    first, last = events[0], events[-1]
    if len(events) == 1:
        return ""
    over = format_duration(last.time_ns - first.time_ns)
    counts = [event.get(CounterDetails) for event in events]
    before, value = counts[0].before, counts[-1].value
    if before is not None and value is not None and value > before:
        return f"{value - before:,} more in {over}, {len(events)} reports"
    return f"{len(events)} reports in {over}"


def _owner(kind: str, event: Event, owners: CgroupOwners, node: str) -> ConditionOwner:
    if kind == "node":
        return ConditionOwner("node", node)
    if kind == "device":
        return ConditionOwner("device", event.get(HardwareDetails).device or event.subject)
    told = event.get(ReapingDetails)
    found = owners.find(told.cgroup) if told.cgroup else None
    if found is not None and found.kind in ("unit", "container", "pod"):
        return found
    return ConditionOwner("process", told.parent or event.subject)
