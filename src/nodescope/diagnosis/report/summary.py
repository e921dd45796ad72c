"""Findings and conditions in short: what reports put first, and what they put together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from nodescope.diagnosis.finding import (
    Chain,
    Diagnosis,
    Finding,
    Link,
    Missing,
    RuledOut,
    Symptom,
)
from nodescope.diagnosis.rules.mechanism import load_mechanisms
from nodescope.judgement.condition import Condition
from nodescope.records.action_words import Step, describe_step
from nodescope.records.view_forms import render_command
from nodescope.wall_time import format_moment, format_span

UNKNOWN = "not shown by this recording"
PROPOSED = "proposed; nothing of it was done"
_PASSED_OVER = ("parent", "why")  # they say more of their neighbours in the chain


def headline(symptom: Symptom) -> str:
    """Return what went wrong, and with what, each once."""
    named = (symptom.subject, f"core {symptom.cpu}")
    if any(name in symptom.statement for name in named):
        return symptom.statement
    return f"{symptom.subject}: {symptom.statement}"


def when(symptom: Symptom) -> str:
    """Return the moment of a symptom, or from when to when it lasted."""
    if symptom.from_ns is None:
        return format_moment(symptom.time_ns)
    return format_span(symptom.from_ns, symptom.time_ns)


def silence(diagnosis: Diagnosis) -> str:
    """Return the sentence for no incident and no condition, worth what was recorded."""
    span = f"between {format_moment(diagnosis.from_ns)} and {format_moment(diagnosis.to_ns)}"
    if diagnosis.missing:
        return f"nothing was found {span}, but not everything could be seen"
    return f"nothing went wrong {span}"


def statement_of(condition: Condition) -> str:
    """Return what a condition is, and which incidents it explains."""
    return "; ".join(filter(None, (condition.statement, condition.reference)))


def since_of(condition: Condition) -> str:
    """Return when a condition was seen first and how it moves, as far as that is known.

    It may have begun earlier: between two readings, or before the recording.
    """
    if condition.since_ns is None:
        return condition.trend or "since when is not known"
    since = f"seen first at {format_moment(condition.since_ns)}"
    return "; ".join(filter(None, (since, condition.trend)))


def condition_steps(condition: Condition, archive: Path | None) -> list[Step]:
    """Return what to do about a condition."""
    return [describe_step(action, archive) for action in condition.steps]


def sentence(text: str) -> str:
    """Return the finding as one sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def split_code(text: str) -> list[tuple[str, bool]]:
    """Return the pieces of a sentence, each with whether it stands between backticks.

    A backtick without a partner is text.
    """
    # re.split puts what the group matched at the odd places
    pieces = enumerate(re.split(r"`([^`]+)`", text))
    return [(piece, place % 2 == 1) for place, piece in pieces if piece]


def again(finding: Finding, most: int) -> str:
    """When the same happened again; those that were not followed may be the same or not."""
    said = []
    if finding.repeats:
        moments = list(dict.fromkeys(map(format_moment, finding.repeats)))
        times = ", ".join(moments[:most])
        left = sum(format_moment(time_ns) in moments[most:] for time_ns in finding.repeats)
        more = f" and {left} more" if left > 0 else ""
        least = "at least " if finding.at_least else ""
        said.append(f"{least}{len(finding.repeats) + 1} times: also at {times}{more}")
    if finding.unfollowed:
        said.append(f"{finding.unfollowed} more of its kind were not followed")
    return "; ".join(said)


def verdict(finding: Finding) -> str:
    """Return the cause in a few words, or the place where only that is known."""
    if not finding.chains or not finding.chains[0].explains:
        return f"cause: {UNKNOWN}"
    chain = finding.chains[0]
    return f"{word_of(chain).lower()}: {name_root(chain)} ({describe_confidence(chain)})"


def word_of(chain: Chain) -> str:
    """Return what the root of a chain is: its cause, or merely where it happened."""
    return "Where" if chain.is_place else "Cause"


def name_root(chain: Chain) -> str:
    """Return the root of a chain by name; one that only reported the trouble says so."""
    return f"reported by {chain.root.title}" if chain.reporter else chain.root.title


def describe_confidence(chain: Chain) -> str:
    """Return how sure a chain is that its root is the cause."""
    if chain.is_place:
        return f"only the place is known; confidence that the cause is there {chain.confidence:.0%}"
    return f"confidence {chain.confidence:.0%}"


def describe_missing(missing: Missing) -> str:
    """Return what follows from something missing, and what to do about it, in words."""
    return "; ".join(filter(None, (missing.consequence, missing.advice)))


def hint_of(missing: Missing, archive: Path | None) -> str:
    """Return what to do about something missing, in words and with the command in one text."""
    command = None if missing.show is None else render_command(missing.show, archive)
    if command is None or not missing.advice:
        return command or missing.advice
    return f"{missing.advice}: `{command}`"


def checks_of(chain: Chain, archive: Path | None) -> list[tuple[str, str]]:
    """Return what looks for the mechanism elsewhere: where to run it, and the command."""
    return [
        ("check, on the node" if view.of_machine else "check", render_command(view, archive))
        for view in chain.check
    ]


def steps_of(chain: Chain, archive: Path | None) -> list[Step]:
    """Return everything that helps: about the root first, then about the mechanism."""
    return [describe_step(action, archive) for action in (*chain.steps, *chain.fixes)]


def path_of(chain: Chain) -> str:
    """From the root to what was reported, by name."""
    steps = [chain.root.short]
    task = any(link.kind == "mechanism" for link in chain.links)
    for link in reversed(chain.links):
        passed_over = link.kind in _PASSED_OVER and not link.short
        if passed_over or (task and link.kind == "task"):
            continue
        name = _name(chain, link)
        if name.startswith(f"{steps[-1]} "):
            steps[-1] = name
        elif not f"{steps[-1]} ".startswith(f"{name} "):
            steps.append(name)
    return " → ".join(steps)


def _name(chain: Chain, link: Link) -> str:
    if link.kind == "core":
        return f"core {link.subject.removeprefix('cpu')}"
    if link.kind == "mechanism":
        title = next((m.title for m in load_mechanisms() if m.name == link.subject), link.subject)
        return " ".join([*(each.subject for each in chain.links if each.kind == "task"), title])
    return link.short or link.subject


def together(ruled_out: Sequence[RuledOut]) -> list[str]:
    """Return the alternatives that were ruled out, a line for each reason."""
    names: dict[str, list[str]] = {}
    for each in ruled_out:
        reason = each.statement.removeprefix(each.name)
        names.setdefault(reason, []).append("" if reason == each.statement else each.name)
    return [f"{', '.join(alike)}{reason}" for reason, alike in names.items()]
