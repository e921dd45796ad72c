"""`diagnose`: symptoms to incidents, incidents to chains, equal ones told once; conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.chains import build, build_moment
from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Missing
from nodescope.diagnosis.lasting import describe_unobserved, find_lasting
from nodescope.diagnosis.rules.suspects import with_show
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.beside import describe_beside
from nodescope.diagnosis.symptoms.incidents import Incident, find_incidents
from nodescope.diagnosis.symptoms.moments import find_standing
from nodescope.diagnosis.symptoms.recurrence import describe_recurrence
from nodescope.diagnosis.symptoms.relations import is_again, is_other_table
from nodescope.diagnosis.unseen import add_unseen, advise
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.view import Span, View
from nodescope.wall_time import format_moment

BEFORE = "the time before the recording"
IN_FULL = 3  # incidents that are compared with a baseline, the dearest part
MOST_INCIDENTS = 40  # that are followed: each takes a tenth of a second
AROUND_NS = 120 * SECOND_NS  # of a moment: an incident near it, whole
_OWNERS = ("unit", "container", "pod", "device", "server", "mount", "module", "state")


def diagnose(
    recording: Recording,
    window: Window,
    at_ns: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Diagnosis:
    """Return what went wrong in the window or near one moment, and what lasts at its end."""
    case = Case(recording, window)
    incidents = find_incidents(case, at_ns)
    result = Diagnosis(window.from_ns, window.to_ns)
    if recording.parts:
        result.boot = recording.parts[-1].description.start.boot_id or None
    followed, left = _choose(incidents)
    for number, incident in enumerate(followed):
        progress(number, len(followed))
        chains, story = build(case, incident, with_baseline=number < IN_FULL)
        _add(result, _finding(incident, chains, story), story.missing)
    if at_ns is not None and not incidents:
        _look_at(case, at_ns, result)
    describe_recurrence(case, result.findings)
    _count(result, left, len(incidents))
    result.missing += describe_beside(case)
    add_unseen(case, result)
    result.missing += _older(case)
    if recording.parts:
        until = window if at_ns is None else Window(min(window.from_ns, at_ns), at_ns + 1)
        result.conditions = find_lasting(recording, until, result.findings)
        result.missing += describe_unobserved(recording, until)
    advise(case, result)
    return result


def _choose(incidents: Sequence[Incident]) -> tuple[list[Incident], list[Incident]]:
    """Those that are followed, of each kind as many as of the others, and those that are not."""
    seen: Counter[str] = Counter()
    turns = []
    for number, incident in enumerate(incidents):
        kind = incident.first.kind
        turns.append((seen[kind], number))
        seen[kind] += 1
    chosen = {number for _, number in sorted(turns)[:MOST_INCIDENTS]}
    parts: tuple[list[Incident], list[Incident]] = ([], [])
    for number, incident in enumerate(incidents):
        parts[number not in chosen].append(incident)
    return parts


def _count(result: Diagnosis, left: Sequence[Incident], total: int) -> None:
    """Say how many were not followed, and how to follow them."""
    if not left:
        return
    kinds = Counter(each.first.kind for each in left)
    for finding in result.findings:
        finding.unfollowed = kinds[finding.symptom.kind]
    times = [each.first.time_ns for each in left]
    named = ", ".join(f"{count} × {kind}" for kind, count in kinds.most_common())
    result.missing.append(
        Missing(
            f"{len(left)} of {total} incidents",
            f"not followed, so nothing is known of their causes: {named}, "
            f"from {format_moment(min(times))} to {format_moment(max(times))}",
            show=View("diagnose", Span(min(times) - SECOND_NS, max(times) + SECOND_NS)),
        )
    )


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
    first, others = incident.first, incident.symptoms[1:]
    again = [each for each in others if is_again(first, each)]
    also = [each for each in others if each not in again]
    finding = Finding(first, chains, also, story.ruled_out)
    finding.repeats = [each.time_ns for each in again]
    core = next((link for chain in chains for link in chain.links if link.kind == "core"), None)
    finding.p_values = [] if story.p is None else [story.p]
    finding.hidden = core.statement if core is not None else None
    if not any(chain.explains for chain in chains) and story.missing:
        finding.ends = story.missing[-1]
    at_ns = incident.first.time_ns
    finding.ruled_out = [with_show(each, story.held, at_ns) for each in story.ruled_out]
    return finding


def _add(result: Diagnosis, finding: Finding, missing: Sequence[Missing]) -> None:
    """Keep a finding, or count it to one that says the same."""
    for each in missing:
        if all(each.what != known.what for known in result.missing):
            result.missing.append(each)
    for known in result.findings:
        if not _has_same_cause(known, finding):
            continue
        known.p_values += finding.p_values
        if known.symptom.kind == finding.symptom.kind:
            known.repeats += [finding.symptom.time_ns, *finding.repeats]
        else:
            known.also.append(finding.symptom)
        return
    result.findings.append(finding)


def _has_same_cause(known: Finding, other: Finding) -> bool:
    """Decide whether two findings come down to one thing, by one mechanism.

    A root that is a mere name (a core, an event) is a cause only of what is alike.
    """
    if not known.chains or not other.chains:
        return False
    one, two = known.chains[0], other.chains[0]
    if (one.root, one.mechanism) != (two.root, two.mechanism):
        return False
    if is_other_table(known.symptom, other.symptom):
        return False
    return known.symptom.kind == other.symptom.kind or one.root.kind in _OWNERS


def _older(case: Case) -> list[Missing]:
    """Report kernel log events from before the recording: nothing else was recorded then."""
    before = case.recording.history
    if case.window.from_ns > before.to_ns:
        return []
    unfollowed = Window(before.from_ns, min(before.to_ns, case.reach.from_ns))
    serious = Counter(
        event.kind for event in case.recording.events(unfollowed)
        if event.kind in EVENT_KINDS and EVENT_KINDS[event.kind].serious
    )  # fmt: skip
    if not serious:
        return []
    named = ", ".join(f"{count} × {kind}" for kind, count in serious.most_common())
    return [
        Missing(
            BEFORE, f"the kernel's log tells of {named} in it; nothing else was recorded then",
            show=View("events", Span(to_ns=unfollowed.to_ns), serious=True),
        )
    ]  # fmt: skip
