"""From a report to a core that something else than the kernel kept: a user thread, the host.

A starved queue and a core that does not schedule are explained by anything that keeps the
core. Many cores are busy in user mode at any time: one counts only if the report names it or
it serves the queue, and if its thread is scheduled so that others do not get their turn.
"""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.evidence_views import view_cores, view_top
from nodescope.diagnosis.finding import Link, Root, RuledOut, Symptom
from nodescope.diagnosis.links.by_task import add_owner
from nodescope.diagnosis.links.queues import find_tied_cores
from nodescope.diagnosis.links.reported import NEAR_NS, span_of
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.incidents import NIC_KINDS, Incident
from nodescope.diagnosis.symptoms.lags import explains
from nodescope.judgement.core_occupants import MOST_OF_IT
from nodescope.judgement.kept_cores import find_kept_cores
from nodescope.judgement.pegged_cores import TIED_NS, PeggedCore
from nodescope.quantities import SECOND_NS
from nodescope.records.action import Action, Target, TargetName
from nodescope.records.view import Moment, View, around
from nodescope.records.witness_tables import CoreOwnerRow

_REALTIME = ("fifo", "rr", "deadline")
_OWNERS: dict[str, TargetName] = {
    "unit": "unit", "container": "container", "pod": "pod", "cgroup": "cgroup",
    "process": "process",
}  # fmt: skip


def follow_kept(case: Case, story: Story, incident: Incident, report: Symptom) -> Ending | None:
    """Add the core that was kept and who kept it; None if no core of the report was."""
    kept, tie = _find(case, incident, report)
    if kept is None:
        return None
    owner = _owner_row(case, kept)
    if kept.mode == "user" and owner is not None and owner.policy not in _REALTIME:
        story.ruled_out.append(_gives_way(kept, owner))
        return None
    if tie:
        story.links.append(
            Link("queue", incident.first.subject, tie, 4.0,
                 View("network", Moment(report.time_ns)), "packets served elsewhere meanwhile")
        )  # fmt: skip
    story.links.append(
        Link(
            "core", f"cpu{kept.cpu}", f"core {kept.cpu} was {kept.describe()}",
            3.0 + min(2.0, kept.seconds / 5), view_cores(kept.from_ns, kept.to_ns),
            "the same event while the core has time",
        )
    )  # fmt: skip
    if kept.mode == "steal":
        return _host(kept)
    return _thread(case, story, kept, owner)


def _find(case: Case, incident: Incident, report: Symptom) -> tuple[PeggedCore | None, str]:
    """Return the longest-kept core that is tied to a report, and what ties them."""
    nic = report.kind in NIC_KINDS
    tied = find_tied_cores(case, incident, incident.of(*NIC_KINDS)[0]) if nic else {}
    if not nic and report.cpu is not None:
        tied = {report.cpu: ""}
    if not tied:
        return None, ""
    near = span_of(incident, NEAR_NS)
    found = [
        each
        for each in find_kept_cores(case.recording.core_readings(near), near, TIED_NS)
        if each.cpu in tied and explains(each.window, report)
    ]
    best = max(found, key=lambda each: each.seconds, default=None)
    return best, "" if best is None else tied[best.cpu]


def _owner_row(case: Case, kept: PeggedCore) -> CoreOwnerRow | None:
    """Return the recorder's own look at who had the core then."""
    span = kept.window.widened(2 * SECOND_NS)
    rows = [row for row in case.rows(CoreOwnerRow, span) if row.cpu == kept.cpu]
    return rows[-1] if rows else None


def _gives_way(kept: PeggedCore, owner: CoreOwnerRow) -> RuledOut:
    return RuledOut(
        f"core {kept.cpu}",
        f"core {kept.cpu} was {kept.describe()} by {owner.comm} with policy {owner.policy}; ruled "
        "out because such a process gives way to others",
        view_cores(kept.from_ns, kept.to_ns),
    )


def end_at_standstill(story: Story, symptom: Symptom) -> Ending:
    """End at the host: every core reported the same, and none of their tasks can do that."""
    show = View("events", around(symptom.time_ns, 60))
    story.links.append(
        Link(
            "state", "a standstill",
            "the cores stood still together, idle ones or the clock as well: a task keeps one "
            "core from running, and not all of them at once", 2.0, show,
            "one of the cores at work in that time",
        )
    )  # fmt: skip
    look = Action("look", Target("node"), note="was it paused, migrated, or its host overloaded?",
                  view=show)  # fmt: skip
    meaning = "The machine below did not run any core for a while; the node cannot see why."
    return Ending(Root("host", "the hypervisor"), "paused", meaning, (look,))


def _host(kept: PeggedCore) -> Ending:
    look = Action(
        "look", Target("node"), note="the host gave the core to somebody else",
        view=view_cores(kept.from_ns, kept.to_ns),
    )  # fmt: skip
    meaning = "The hypervisor ran something else on the core: the guest cannot see what."
    return Ending(Root("host", "the hypervisor"), "steal", meaning, (look,))


def _thread(
    case: Case, story: Story, kept: PeggedCore, owner: CoreOwnerRow | None
) -> Ending | None:
    """Add the thread that had the core, how it is scheduled, and whose it is."""
    main = case.commands_on(kept.window, kept.cpu).find_main(MOST_OF_IT)
    if owner is None and main is None:
        story.lacks("samples", f"nobody knows who was on core {kept.cpu}",
                    "see why no samples were taken", View("doctor"))  # fmt: skip
        return None
    comm = owner.comm if owner is not None else main.key if main is not None else ""
    share = f"had {main.share:.0%} of core {kept.cpu}'s samples" if main else "had the core"
    if owner is not None:
        priority = f", priority {owner.priority}" if owner.priority is not None else ""
        cores = f", on cores {owner.affinity}" if owner.affinity else ""
        how = f"; it is scheduled as {owner.policy}{priority}{cores}, before everything ordinary"
        strength = 4.5
    else:
        how, strength = "; how it is scheduled was not recorded", 1.5
    who = case.name_processes(kept.window, kept.cpu, comm)
    if owner is not None:
        who = f"{comm} ({owner.pid})"
    story.links.append(
        Link("task", comm, f"{who} {share} in those seconds{how}", strength,
             view_top(kept, "comm"), f"{comm} as busy at other times without harm")
    )  # fmt: skip
    if owner is not None and owner.cgroup:
        root = owner_of_cgroup(case, owner.cgroup, kept.to_ns)
        story.links.append(
            Link("owner", root.name, f"{comm} is of {root.kind} {root.name} ({owner.cgroup})", 4.5,
                 View("events", around(kept.to_ns, 60)), f"{comm} running elsewhere, too")
        )  # fmt: skip
    else:
        root = add_owner(case, story, kept.to_ns, comm, None if owner is None else owner.pid)
    steps: tuple[Action, ...] = ()
    if root.kind in _OWNERS:
        note = "does it need a real-time policy, and this core?"
        steps = (Action("look", Target(_OWNERS[root.kind], root.name), note=note),)
    meaning = "A real-time process runs before everything ordinary, soft interrupts included."
    named = "realtime_process" if owner is not None else "kept_by_user_process"
    return Ending(root, named, meaning if owner is not None else "", steps)
