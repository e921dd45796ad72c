"""`diagnose`: symptoms to incidents, incidents to chains, equal ones told once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodescope.analysis.window import SECOND_NS, Window
from nodescope.archive.reader import Segment
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.chains import build, build_moment
from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Missing
from nodescope.diagnosis.incidents import Incident, find_incidents
from nodescope.diagnosis.moments import find_standing
from nodescope.diagnosis.recurrence import describe_recurrence
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.suspects import with_show

IN_FULL = 3  # incidents that are compared with a baseline: the rest tell the same
MOST_INCIDENTS = 40
AROUND_NS = 120 * SECOND_NS  # of a moment: an incident near it, whole


def diagnose(
    segments: Sequence[Segment],
    window: Window,
    at_ns: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Diagnosis:
    """Everything that went wrong in the window, or near one moment of it."""
    case = Case(segments, window)
    incidents = find_incidents(case, at_ns)
    result = Diagnosis(window.from_ns, window.to_ns)
    for number, incident in enumerate(incidents[:MOST_INCIDENTS]):
        progress(number, len(incidents))
        chains, story = build(case, incident, with_baseline=number < IN_FULL)
        _add(result, _finding(incident, chains, story), story.missing)
    if at_ns is not None and not incidents:
        _look_at(case, at_ns, result)
    describe_recurrence(case, result.findings)
    result.missing += _missing_tables(case, result)
    return result


def _look_at(case: Case, at_ns: int, result: Diagnosis) -> None:
    """A moment near which nothing was reported: what stands out in it, if anything does."""
    story = Story()
    standing = find_standing(case, story, at_ns)
    if standing is None:
        result.missing += story.missing
        return
    chains = build_moment(case, story, standing)
    _add(result, _finding(Incident([standing.symptom]), chains, story), story.missing)


def _finding(incident: Incident, chains: list[Chain], story: Story) -> Finding:
    finding = Finding(incident.first, chains, incident.symptoms[1:], story.ruled_out)
    core = next((link for chain in chains for link in chain.links if link.kind == "core"), None)
    finding.p_values = [] if story.p is None else [story.p]
    finding.hidden = core.statement if core is not None else None
    at_ns = incident.first.time_ns
    finding.ruled_out = [with_show(each, story.held, at_ns) for each in story.ruled_out]
    return finding


def _add(result: Diagnosis, finding: Finding, missing: Sequence[Missing]) -> None:
    """Keep a finding, or count it to one that says the same."""
    for each in missing:
        if all(each.what != known.what for known in result.missing):
            result.missing.append(each)
    key = _key(finding)
    for known in result.findings:
        if key is not None and _key(known) == key:
            known.repeats.append(finding.symptom.time_ns)
            known.p_values += finding.p_values
            return
    result.findings.append(finding)


def _key(finding: Finding) -> tuple[object, ...] | None:
    if not finding.chains:
        return None
    chain = finding.chains[0]
    return finding.symptom.kind, chain.root, chain.mechanism


def _missing_tables(case: Case, result: Diagnosis) -> list[Missing]:
    """Sources whose absence makes silence worth less."""
    found = []
    # An imported log has no rows of its own: its lines are events.
    if not case.observed("kernel_log") and not case.events_of("kernel", within=case.reach):
        found.append(
            Missing("kernel log", "resets and lockups would not be seen", "`nodescope doctor`")
        )
    if not case.recorded("samples") and all(each.what != "samples" for each in result.missing):
        found.append(Missing("samples", "processes cannot be named", "`nodescope doctor`"))
    return found
