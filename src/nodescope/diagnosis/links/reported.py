"""From what was reported to the core that explains it.

A report leads to a core by what ties them: the queue that the core serves, the core that
the report names, or, weakest, the time alone. A core that was pegged too early or too late
(`lags`) is ruled out by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.diagnosis.case import Case, CoreLook
from nodescope.diagnosis.evidence_views import view_cores
from nodescope.diagnosis.finding import Absence, Link, RuledOut, Symptom
from nodescope.diagnosis.links.queues import core_of_nic
from nodescope.diagnosis.report.summary import headline
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.incidents import NIC_KINDS, NOT_EVENTS, Incident
from nodescope.diagnosis.symptoms.lags import (
    JOB_AFTER_NIC_NS,
    JOB_EARLY_NS,
    LAGS,
    explains,
    most_s,
    patience_s,
    since_free_s,
    told_ns,
)
from nodescope.judgement.pegged_cores import PEGGED_NS, TIED_NS, PeggedCore
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recording.window import Window
from nodescope.records.event_details import NicDetails
from nodescope.records.view import View, around

BEFORE_REPORT_NS = 10 * SECOND_NS  # and the report's own lag: when a core must have been seen
MOSTLY = 0.9  # of that time: readings are a second apart
NEAR_NS = 60 * SECOND_NS  # pegged cores so close to a report are named, if only to rule them out
EDGE_NS = 2 * SECOND_NS
BY_TIME_ALONE = 1.5  # nats less for a core that nothing ties to the event but the time
JOB_BY_TIME = 0.5  # nats: jobs fail for many reasons, and one follows a pegged core by chance, too
ONLY_TIME = "only the time ties them"


def add_report(story: Story, incident: Incident) -> Symptom | None:
    """Links for what was reported; what a core is to explain of it, None if nothing was."""
    network = incident.of(*NIC_KINDS)
    events = network or [
        each for each in incident.symptoms if each.kind not in ("job_failed", *NOT_EVENTS)
    ]
    job = next(iter(incident.of("job_failed")), None)
    if not events:
        return job
    gravest = events[0]
    if job is not None:
        _add_job_of(story, job, _nearest_before(job, gravest, events))
    if network:
        more = f" ({len(network)} messages)" if len(network) > 1 else ""
        statement, strength = f"{headline(gravest)}{more}", 5.0
        counted = gravest.get(NicDetails).known_from == "counters"
        refute = "counters that did not rise" if counted else "no such line in the kernel's log"
    else:
        statement, strength, refute = gravest.statement, 4.0, "no such event"
    story.links.append(
        Link(
            "event", gravest.subject, statement, strength,
            View("events", around(gravest.time_ns, 30)), refute,
        )
    )  # fmt: skip
    return min(events, key=told_ns)


def _nearest_before(job: Symptom, gravest: Symptom, events: Sequence[Symptom]) -> Symptom:
    """Return the last event like the gravest before a job failed; the gravest if there is none."""
    alike = [each for each in events if each.kind == gravest.kind and each.time_ns <= job.time_ns]
    if gravest.kind in NIC_KINDS or not alike:
        return gravest
    return max(alike, key=lambda each: each.time_ns)


def _add_job_of(story: Story, job: Symptom, event: Symptom) -> None:
    """The job, if it failed in time to have failed on the event."""
    lag_ns = job.time_ns - event.time_ns
    if not -JOB_EARLY_NS <= lag_ns <= JOB_AFTER_NIC_NS:
        return
    after = f"{max(lag_ns, 0) / SECOND_NS:.0f} s after"
    if event.kind in NIC_KINDS:
        said, strength, other = f"{after} {event.subject} went down", 2.5, "a reset"
    else:
        said = f"{after} what was reported of {event.subject}; {ONLY_TIME}"
        strength, other = JOB_BY_TIME, "such a report"
    story.links.append(_job_link(job, said, strength, f"jobs that fail as often without {other}"))


def _job_link(job: Symptom, said: str, strength: float, refute: str) -> Link:
    return Link(
        "job", job.subject, f"{job.statement}, {said}", strength,
        View("events", around(job.time_ns, 60)), refute,
    )  # fmt: skip


# -- the core ----------------------------------------------------------------


def add_core(case: Case, story: Story, incident: Incident, report: Symptom | None) -> bool:
    """The core that was pegged, and what it has to do with what was reported."""
    if not case.recorded("cores"):
        story.lacks(
            "per-core time", _without_core_time(report),
            "the recorder always reads it; to an imported capture add what mpstat or sar wrote",
        )  # fmt: skip
        return False
    if report is None:
        held = case.pegged_cores(span_of(incident, EDGE_NS))
        chosen = _longest([each for each in held if _is_of(each, incident)], incident)
    else:
        chosen = _explaining(case, story, incident, report)
    if chosen is None:
        return False
    story.held = chosen
    said, strength = "", 3.0 + min(2.0, chosen.seconds / 5)
    if report is not None and report.kind == "job_failed":
        story.links.append(_job_after(report, chosen))
    elif report is not None and report.kind in NIC_KINDS:
        said = _against_patience(report, chosen)
    elif _by_time(incident, report):
        said = f"; what was reported names no core, so {ONLY_TIME}"
        strength -= BY_TIME_ALONE
    story.links.append(
        Link(
            "core", f"cpu{chosen.cpu}",
            f"core {chosen.cpu} was {chosen.describe()}"
            f"{said}{node_average(case, chosen)}",
            strength,
            view_cores(chosen.from_ns, chosen.to_ns),
            "the same event while no core is pegged",
        )
    )  # fmt: skip
    return True


def _without_core_time(report: Symptom | None) -> str:
    """Say what cannot be known where core time was not recorded; the report may name a core."""
    if report is None or report.cpu is None:
        return "without the time of each core none can be named"
    return (
        f"the report names core {report.cpu}; without the time of each core it cannot be seen "
        "whether it was pegged"
    )


def _explaining(case: Case, story: Story, incident: Incident, report: Symptom) -> PeggedCore | None:
    """The core that explains a report; those that were pegged too early or too late do not."""
    near = span_of(incident, NEAR_NS)
    # Beside a report that a core is tied to, one whole reading is enough.
    least = PEGGED_NS if _by_time(incident, report) else TIED_NS
    held = [each for each in case.pegged_cores(near, least) if explains(each.window, report)]
    if report.kind in NIC_KINDS:
        chosen = core_of_nic(case, story, incident, incident.of(*NIC_KINDS)[0], held)
    else:
        chosen = _longest(held, incident)
    if chosen is None:
        story.ruled_out += _rule_out_by_time(case.pegged_cores(near), report)
    return chosen


def span_of(incident: Incident, margin_ns: int) -> Window:
    """All of an incident and something around it."""
    times = [each.time_ns for each in incident.symptoms]
    starts = [each.from_ns for each in incident.symptoms if each.from_ns is not None]
    return Window(min(times + starts) - margin_ns, max(times) + margin_ns)


def _longest(held: Sequence[PeggedCore], incident: Incident) -> PeggedCore | None:
    """Return the longest-pegged of the cores that the incident names, or of all if none."""
    named = {each.cpu for each in incident.symptoms if each.cpu is not None}
    mine = [each for each in held if not named or each.cpu in named]
    return max(mine, key=lambda each: each.seconds, default=None)


def _is_of(held: PeggedCore, incident: Incident) -> bool:
    """Return whether it is one of an incident's own: others may have pegged the core between."""
    return any(
        each.cpu == held.cpu and (each.from_ns or 0) < held.to_ns and held.from_ns < each.time_ns
        for each in incident.symptoms
    )


def _by_time(incident: Incident, report: Symptom | None) -> bool:
    """Return whether the reports name no core or queue, such as those of a hung task."""
    if report is None or report.kind in NIC_KINDS:
        return False
    return all(each.cpu is None for each in incident.symptoms if each.kind not in NOT_EVENTS)


def _job_after(job: Symptom, held: PeggedCore) -> Link:
    """A job that no event stands between and the core."""
    free_s = since_free_s(held.window, job)
    when = f"while core {held.cpu} was pegged"
    if free_s > 0:
        when = f"{free_s:.0f} s after core {held.cpu} had been held"
    refute = "jobs that fail as often while no core is pegged"
    return _job_link(job, f"{when}; {ONLY_TIME}", JOB_BY_TIME, refute)


def _against_patience(report: Symptom, held: PeggedCore) -> str:
    """How long the queue had waited, against how long its driver does."""
    waited_s = (min(held.to_ns, told_ns(report)) - held.from_ns) / SECOND_NS
    patience = patience_s(report)
    # Readings see only a part of the first second of a hold and of the last.
    if waited_s >= patience - 1:
        return f", as long as the {patience:.0f} s after which the driver gives up"
    return f", though the driver gives up only after {patience:.0f} s"


def _rule_out_by_time(held: Sequence[PeggedCore], report: Symptom) -> list[RuledOut]:
    """The closest core that was pegged too early, and the closest that was pegged too late."""
    lag = LAGS[report.kind]
    early = [each for each in held if since_free_s(each.window, report) > most_s(report)]
    late = [each for each in held if each.from_ns >= told_ns(report)]
    found = []
    if early:
        core = max(early, key=lambda each: each.to_ns)
        when = f"until {since_free_s(core.window, report):.0f} s before it"
        why = f"that is over {most_s(report):.0f} s: {lag.why}"
        found.append(_held_then(core, when, why, early, report))
    if late:
        core = min(late, key=lambda each: each.from_ns)
        when = f"but from {(core.from_ns - told_ns(report)) / SECOND_NS:.0f} s after it"
        found.append(_held_then(core, when, "a cause comes first", late, report))
    return found


def _held_then(
    core: PeggedCore, when: str, why: str, alike: Sequence[PeggedCore], report: Symptom
) -> RuledOut:
    more = f" (and {len(alike) - 1} more times)" if len(alike) > 1 else ""
    first = min(core.from_ns, told_ns(report))
    last = max(core.to_ns, told_ns(report)) + SECOND_NS
    return RuledOut(
        f"core {core.cpu}",
        f"core {core.cpu} was pegged for {core.seconds:.0f} s, {when}{more}; "
        f"ruled out because {why}",
        view_cores(first, last),
    )


def lack_core(case: Case, story: Story, report: Symptom) -> None:
    """Say what was seen of the cores before a report that none of them explains."""
    if not case.recorded("cores"):
        return  # said already
    if report.kind in NIC_KINDS:
        advice, show = "look at the device, its driver and the link", View("network")
    else:
        advice, show = "look at what ran", View("flame", around(report.time_ns))
    lag_s = most_s(report) if report.kind in LAGS else 0.0
    before_ns = BEFORE_REPORT_NS + round(lag_s * SECOND_NS)
    before = Window(told_ns(report) - before_ns, told_ns(report))
    seen = case.look_at_cores(before)
    said = _describe_look(seen, report, before_ns)
    absent = Absence("cores", before, seen.observed_ns) if seen.observed_ns else None
    story.lacks("a pegged core", said, advice, show, absent)


def _describe_look(seen: CoreLook, report: Symptom, before_ns: int) -> str:
    """Return what was seen of the cores before a report, and what of them was not."""
    before = f"in the {format_duration(before_ns)} before it"
    unknown = "a pegged core cannot be ruled out"
    if not seen.observed_ns:
        return f"core time was not recorded {before}: {unknown}"
    if report.cpu is not None and report.cpu not in seen.cpus:
        return f"the time of core {report.cpu} was not recorded {before}"
    if seen.observed_ns < MOSTLY * before_ns:
        return (
            f"core time was recorded for only {format_duration(seen.observed_ns)} {before}: "
            f"no core was pegged in what was recorded, and for the rest {unknown}"
        )
    if len(seen.cpus) < seen.cores:
        return (
            f"the time of {len(seen.cpus)} of {seen.cores} cores was recorded {before}: none of "
            f"those recorded was pegged, and of the others {unknown}"
        )
    return f"no core that could explain it was pegged {before}"


def node_average(case: Case, held: PeggedCore) -> str:
    """Return the share that an average over all cores would have shown."""
    busy = case.busy_share(held.window)
    return "" if busy is None else f"; the node on average {busy:.0%} busy"
