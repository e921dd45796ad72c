"""From what kubelet reports of itself to the resource that is short, or what it waits for."""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.by_task import add_owner
from nodescope.diagnosis.links.growth import read_growth, read_largest
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup
from nodescope.diagnosis.rules.wait import classify_wait
from nodescope.diagnosis.story import Story
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target, TargetName
from nodescope.records.trouble_details import ServiceReportDetails
from nodescope.records.view import View, around
from nodescope.records.witness_tables import BlockedTaskRow

BEFORE_NS = 5 * MINUTE_NS
_OWNERS: dict[str, TargetName] = {
    "unit": "unit", "container": "container", "pod": "pod", "cgroup": "cgroup",
    "process": "process",
}  # fmt: skip


def follow_service(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """Add what a service is short of, or waits for; None if nothing recorded shows it."""
    told = symptom.get(ServiceReportDetails)
    if symptom.kind == "service_limit":
        return _refused(story, symptom, told)
    if symptom.kind == "eviction" and (told.resource or "").startswith("memory"):
        return _memory(case, story, symptom)
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
    target = Target(_OWNERS[root.kind], root.name)
    note = f"does the number of its {resource} grow? then find the leak"
    steps = [Action("look", target, note=note)]
    if root.kind == "unit":
        steps.append(
            Action("raise_limit", target, value=resource, note="if it needs as many by right")
        )
    meaning = "The kernel refuses what goes over a limit of the process, its user or its cgroup."
    return Ending(root, "service_limit", meaning, tuple(steps))


def _memory(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    largest = read_largest(case, symptom.time_ns, lambda row: row.memory_bytes)
    if largest is None:
        story.lacks(
            "memory of cgroups", "who had the node's memory was not recorded",
            "record with the observer `cgroups`", View("doctor"),
        )  # fmt: skip
        return None
    root = owner_of_cgroup(case, largest.path, symptom.time_ns)
    growth = read_growth(largest.readings)
    share = "of the growth in the ten minutes before" if largest.grew else "of all cgroups' memory"
    words = f"; {growth.describe()}" if growth is not None else ""
    story.links.append(
        Link(
            "limit", largest.path,
            f"{largest.path} has {largest.share:.0%} {share}{words}", 1.0 + 3.0 * largest.share,
            View("table", around(symptom.time_ns, 900), table="cgroups",
                 where=(("cgroup", largest.path),)),
            "another cgroup that grew as much",
        )
    )  # fmt: skip
    steps: tuple[Action, ...] = ()
    if root.kind in _OWNERS:
        steps = (Action("look", Target(_OWNERS[root.kind], root.name),
                        note="it has most of the memory"),)  # fmt: skip
    return Ending(root, "memory_of_the_node", "The node itself was short of memory.", steps)


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
    if case.observed("blocked_tasks"):
        said = "no task of it was seen blocked in the five minutes before"
    else:
        said = "blocked tasks were not recorded: what it waited for is not known"
    story.lacks(f"what {unit} waited for", said, "look at its log, the disk and the API server")
    return None
