"""Which way an incident is followed: at the core, cgroup, task, device, table or service.

Each kind of event declares its way (`records/event_kind`). Of an incident with several
symptoms the one that causes the others leads: a device before the tasks that wait for it.
"""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.finding import Link, Symptom
from nodescope.diagnosis.links.by_cgroup import follow_cgroup
from nodescope.diagnosis.links.by_device import end_at_hardware, follow_device
from nodescope.diagnosis.links.by_service import follow_service
from nodescope.diagnosis.links.by_table import follow_table
from nodescope.diagnosis.links.by_task import (
    choose_task,
    follow_fault,
    follow_task,
    waits_for_no_core,
)
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.incidents import NOT_EVENTS, Incident
from nodescope.quantities import format_duration
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.view import View, around

# The first of these that an incident has leads: what stands below may follow from it.
_ORDER = ("device", "table", "cgroup", "ends", "core", "task", "service")
LATER = 1.5  # nats, for a lead that was reported after what it is to explain
_FAULTS = ("kernel_oops", "kernel_panic")
_CLOCK = "clocksource_unstable"
_HARDWARE = ("mce", "edac_ue", "hw_error")


def way_of(symptom: Symptom) -> str:
    """Return the way of a symptom; `ends` for a kind that no way leads on from."""
    if symptom.kind in NOT_EVENTS:
        return "core"
    kind = EVENT_KINDS[symptom.kind]
    return "ends" if kind.ends else kind.way or "core"


def is_of_core(symptom: Symptom) -> bool:
    """Decide whether a core may explain a symptom."""
    return way_of(symptom) == "core" or EVENT_KINDS[symptom.kind].lag is not None


def choose_lead(case: Case, incident: Incident) -> Symptom | None:
    """Return the symptom whose way is followed first; None if that is the way of a core."""
    events = [each for each in incident.symptoms if each.kind != "job_failed"]
    # That a clock is unstable may follow from a core that did not run.
    events = [each for each in events if each.kind != _CLOCK] or events
    ways = {way_of(each) for each in events}
    first = next((way for way in _ORDER if way in ways), "core")
    if first == "core":
        return _lead_to_task(case, events)
    mine = [each for each in events if way_of(each) == first]
    if first == "task":
        hung = [each for each in mine if each.kind == "hung_task"]
        faults = [each for each in mine if each.kind in _FAULTS]
        return min(faults, key=lambda each: each.time_ns) if faults else choose_task(case, hung)
    return min(mine, key=lambda each: each.time_ns)


def _lead_to_task(case: Case, events: list[Symptom]) -> Symptom | None:
    """Return a blocked task whose stack says that it waits for no core; None if there is none."""
    hung = [each for each in events if each.kind == "hung_task"]
    if not hung or any(each.kind not in ("hung_task", *NOT_EVENTS) for each in events):
        return None
    chosen = choose_task(case, hung)
    return chosen if waits_for_no_core(case, chosen) else None


def follow_way(case: Case, story: Story, incident: Incident, lead: Symptom) -> Ending | None:
    """Add the links of the lead's way; None where it leads no further."""
    way = way_of(lead)
    if story.links and story.links[-1].statement != lead.statement and lead in incident.symptoms:
        _add_lead(story, incident, lead)
    if lead.kind in _HARDWARE and (ending := end_at_hardware(lead)) is not None:
        return ending
    if way == "ends":
        story.lacks(
            "what is behind it", EVENT_KINDS[lead.kind].ends,
            show=View("events", around(lead.time_ns, 600)),
        )  # fmt: skip
        return None
    if way == "cgroup":
        return follow_cgroup(case, story, lead)
    if way == "device":
        return follow_device(case, story, lead)
    if way == "table":
        return follow_table(case, story, lead)
    if way == "service":
        return follow_service(case, story, lead)
    if lead.kind in _FAULTS:
        return follow_fault(case, story, lead)
    return follow_task(case, story, lead)


def _add_lead(story: Story, incident: Incident, lead: Symptom) -> None:
    """Add the symptom that is followed, where another one names the incident."""
    first = incident.first
    if lead.kind == first.kind:
        return
    later_ns = lead.time_ns - first.time_ns
    said, strength = lead.statement, 3.0
    if later_ns > 0:
        # A report may come after what it explains; then less ties them.
        said, strength = f"{format_duration(later_ns)} later: {said}", LATER
    story.links.append(
        Link(
            "later" if later_ns > 0 else "earlier", lead.subject, said, strength,
            View("events", around(lead.time_ns, 30)), "one without the other",
        )
    )  # fmt: skip
