"""From what kubelet reports of itself to the resource that is short, or what it waits for."""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.by_cgroup import follow_memory_of_node
from nodescope.diagnosis.links.by_task import add_owner
from nodescope.diagnosis.links.seen_before import describe_look, look_before
from nodescope.diagnosis.rules.wait import classify_wait
from nodescope.diagnosis.story import Story
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.trouble_details import ServiceReportDetails
from nodescope.records.view import View, around
from nodescope.records.witness_tables import BlockedTaskRow

BEFORE_NS = 5 * MINUTE_NS


def follow_service(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """Add what a service is short of, or waits for; None if nothing recorded shows it."""
    told = symptom.get(ServiceReportDetails)
    if symptom.kind == "service_limit":
        return _refused(story, symptom, told)
    if symptom.kind == "eviction" and (told.resource or "").startswith("memory"):
        return follow_memory_of_node(case, story, symptom, "")
    if symptom.kind == "eviction":
        story.lacks(
            f"who uses {told.resource or 'the resource'}",
            "who fills it was not recorded", "look on the node: what grew there?",
        )  # fmt: skip
        return None
    return _blocked(case, story, symptom)


def _refused(story: Story, symptom: Symptom, told: ServiceReportDetails) -> Ending:
    """End at the service that logs that the kernel refused it something."""
    root = Root("unit", told.unit) if told.unit else Root("process", symptom.subject)
    resource = told.resource or "a resource"
    story.links.append(
        Link(
            "limit", resource,
            f"{root.name} logs that it got none of its {resource} any more; how many it had, and "
            "its limit, were not recorded", 3.0, View("events", around(symptom.time_ns, 600)),
            f"{resource} well below the limit then", short=f"its limit of {resource}",
        )
    )  # fmt: skip
    target = Target("unit" if told.unit else "process", root.name)
    note = f"does the number of its {resource} grow? then find the leak"
    steps = [Action("look", target, note=note)]
    if root.kind == "unit":
        steps.append(
            Action("raise_limit", target, value=resource, note="if it needs as many by right")
        )
    meaning = "The kernel refuses what goes over a limit of the process, its user or its cgroup."
    return Ending(root, "service_limit", meaning, tuple(steps))


def _blocked(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """Name what tasks of the service were blocked on in the minutes before."""
    unit = symptom.get(ServiceReportDetails).unit or "kubelet.service"
    before = Window(symptom.time_ns - BEFORE_NS, symptom.time_ns + SECOND_NS)
    for row in reversed(case.rows(BlockedTaskRow, before)):
        named = row.cgroup is not None and unit in row.cgroup
        if not named and row.comm not in unit:
            continue
        frames = tuple((row.stack or row.waits_in or "").split(";"))
        found = classify_wait(frames)
        if found is None:
            continue
        wait, function = found
        story.links.append(
            Link(
                "wait", wait.name,
                f"{row.comm} of {unit} waited for {wait.title} ({function})", 2.5,
                View("table", around(row.time_ns, 60), table="blocked_tasks"),
                "such waits without that report",
                short=f"waits for {wait.title}",
            )
        )  # fmt: skip
        root = add_owner(case, story, row.time_ns, row.comm, row.tid)
        return Ending(root, wait.name, wait.meaning)
    seen = look_before(case, "blocked_tasks", symptom.time_ns, BEFORE_NS)
    said = f"no task of it was seen blocked {describe_look(seen)}"
    if not seen.observed_ns:
        said = "blocked tasks were not recorded: what it waited for is not known"
    story.lacks(
        f"what {unit} waited for", said, "look at its log, the disk and the API server",
        absent=seen if seen.observed_ns else None,
    )  # fmt: skip
    return None
