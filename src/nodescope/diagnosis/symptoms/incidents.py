"""Find symptoms unasked, and group those that belong to one incident."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Symptom
from nodescope.diagnosis.symptoms.lags import JOB_EARLY_NS, explains
from nodescope.diagnosis.symptoms.relations import are_two_troubles, may_be_one
from nodescope.diagnosis.symptoms.standstill import join_standstills
from nodescope.diagnosis.symptoms.subjects import describe_kill
from nodescope.judgement.core_occupants import ALL_BUT_HOUSEKEEPING
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import HungTaskDetails, KernelLineDetails, PeggedCoreDetails
from nodescope.records.event_kinds import EVENT_KINDS, SYMPTOM_RANKS

LAST_RANK = 1000
BY_USER = "a user wrote this line to /dev/kmsg, not the kernel"
MOMENT = "moment"  # somebody asks about it; not an event
# What the recorder reports of a pegged core is looked at in the core's own time.
PEGGED_CORE = "core_held"
NOT_EVENTS = (PEGGED_CORE, MOMENT)
NIC_KINDS = tuple(kind for kind in SYMPTOM_RANKS if EVENT_KINDS[kind].of_nic)
APART_NS = 30 * SECOND_NS  # symptoms further apart are not one incident
NEAR_NS = 60 * SECOND_NS  # of a moment somebody asks about
_COMPARED = 50  # latest symptoms of an incident that a further one is compared with


def rank_of(symptom: Symptom) -> int:
    """Return how grave a symptom is: the lowest is the harm a person was paged for."""
    return SYMPTOM_RANKS.get(symptom.kind, LAST_RANK)


@dataclass(slots=True)
class Incident:
    """Symptoms that belong together; the first is the gravest."""

    symptoms: list[Symptom]
    last_ns: int = 0  # while it is put together: when its latest symptom was

    @property
    def first(self) -> Symptom:
        return self.symptoms[0]

    def of(self, *kinds: str) -> list[Symptom]:
        """Its symptoms of some kinds."""
        return [symptom for symptom in self.symptoms if symptom.kind in kinds]


def find_incidents(case: Case, at_ns: int | None = None) -> list[Incident]:
    """Those of the window, or near one moment of it, the gravest and of these the latest first.

    An incident at the window's edge is seen whole: what explains it may lie just outside.
    """
    near = case.window if at_ns is None else Window(at_ns - NEAR_NS, at_ns + NEAR_NS)
    found = [
        incident
        for incident in group(find_symptoms(case, case.window.widened(APART_NS)))
        if any(_touches(each, near) and _touches(each, case.window) for each in incident.symptoms)
    ]
    return sorted(found, key=lambda each: (rank_of(each.first), -each.first.time_ns))


def _touches(symptom: Symptom, window: Window) -> bool:
    return _start_ns(symptom) < window.to_ns and symptom.time_ns >= window.from_ns


def _start_ns(symptom: Symptom) -> int:
    return symptom.time_ns if symptom.from_ns is None else symptom.from_ns


def _began_ns(symptom: Symptom) -> int:
    """Return when a symptom began: a blocked task is reported minutes after that."""
    blocked_s = symptom.get(HungTaskDetails).blocked_s
    return _start_ns(symptom) - (blocked_s or 0) * SECOND_NS


def find_symptoms(case: Case, window: Window) -> list[Symptom]:
    """All of a window, in the order of time."""
    wanted = [kind for kind in SYMPTOM_RANKS if kind != PEGGED_CORE]
    found = [_from_event(event) for event in case.events_of(*wanted, within=window)]
    found = join_standstills(found)
    found += [held for each in case.pegged_cores(window) if (held := _from_held(case, each))]
    return sorted(found, key=lambda symptom: symptom.time_ns)


def _from_event(event: Event) -> Symptom:
    said = describe_kill(event) if event.kind == "oom_kill" else event.message
    if event.get(KernelLineDetails).user:
        said = f"{said} ({BY_USER})"
    return Symptom(event.kind, event.time_ns, event.subject, said, event.cpu, None, event.details)


def _from_held(case: Case, held: PeggedCore) -> Symptom | None:
    """A core in the kernel is a symptom if one process held it there, or nobody can say."""
    details = PeggedCoreDetails(seconds=round(held.seconds, 1))
    main = case.commands_on(held.window, held.cpu).find_main()
    if main is not None:
        if main.share < ALL_BUT_HOUSEKEEPING:
            return None  # many processes shared it: a busy core, not a pegged one
        details = details.replace(comm=main.key)
    return Symptom(
        PEGGED_CORE,
        held.to_ns,
        f"cpu{held.cpu}",
        f"core {held.cpu} was {held.describe()}",
        held.cpu,
        held.from_ns,
        details,
    )


def group(symptoms: Iterable[Symptom]) -> list[Incident]:
    """Symptoms close in time that may be one thing (`relations`)."""
    ordered = sorted(symptoms, key=lambda each: each.time_ns)
    reach_ns = APART_NS + max((each.time_ns - _began_ns(each) for each in ordered), default=0)
    incidents: list[Incident] = []
    recent: list[Incident] = []  # those that a later symptom may still belong to
    for symptom in ordered:
        recent = [each for each in recent if symptom.time_ns - each.last_ns <= reach_ns]
        home = next((each for each in reversed(recent) if _belongs(each, symptom)), None)
        if home is None:
            home = Incident([])
            incidents.append(home)
            recent.append(home)
        home.symptoms.append(symptom)
        home.last_ns = symptom.time_ns
    for incident in incidents:
        incident.symptoms.sort(key=_gravest_first)
    return incidents


def _gravest_first(symptom: Symptom) -> tuple[int, int, int]:
    """Return the order within an incident: by rank; of pegged cores the longest, else the first."""
    length_ns = symptom.time_ns - _start_ns(symptom) if symptom.kind == PEGGED_CORE else 0
    return rank_of(symptom), -length_ns, symptom.time_ns


def _belongs(incident: Incident, symptom: Symptom) -> bool:
    if _began_ns(symptom) - incident.last_ns > APART_NS or not _in_time(incident, symptom):
        return False
    latest = incident.symptoms[-_COMPARED:]
    # A job may have failed on anything: what else there is must fit by itself.
    others = [each for each in latest if each.kind != "job_failed"] or latest
    if not any(may_be_one(each, symptom) for each in others):
        return False
    if any(are_two_troubles(each, symptom) for each in others):
        return False
    if symptom.cpu is None:
        return True
    cpus = {each.cpu for each in incident.symptoms if each.cpu is not None}
    return (
        not cpus or symptom.cpu in cpus or any(each.kind in NIC_KINDS for each in incident.symptoms)
    )


def _in_time(incident: Incident, symptom: Symptom) -> bool:
    """Return whether the first may explain the second: a cause does not come later."""
    if symptom.kind == PEGGED_CORE:
        reports = [each for each in incident.symptoms if each.kind not in NOT_EVENTS]
        # A core that a process pegged before may be pegged on by it, with a pause.
        goes_on = any(_is_same_hold(each, symptom) for each in incident.of(PEGGED_CORE))
        return goes_on or _explains_any(symptom, reports)
    if all(each.kind in NOT_EVENTS for each in incident.symptoms):
        return any(_explains_any(held, [symptom]) for held in incident.symptoms)
    if symptom.kind == "job_failed":
        return True
    if all(each.kind in ("job_failed", *NOT_EVENTS) for each in incident.symptoms):
        jobs = incident.of("job_failed")
        return symptom.time_ns - min(each.time_ns for each in jobs) <= JOB_EARLY_NS
    return True


def _is_same_hold(before: Symptom, after: Symptom) -> bool:
    """Return whether the same core was pegged by the same process, as far as that is known."""
    comms = {each.get(PeggedCoreDetails).comm for each in (before, after)} - {None}
    return before.cpu == after.cpu and len(comms) <= 1


def _explains_any(held: Symptom, reports: Iterable[Symptom]) -> bool:
    span = Window(_start_ns(held), held.time_ns)
    return any(explains(span, report) for report in reports)
