"""A diagnosis as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import NotRequired, TypedDict

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Link, Missing, RuledOut, Symptom
from nodescope.diagnosis.report.summary import hint_of, statement_of
from nodescope.judgement.condition import Condition
from nodescope.records.action import Action, action_document
from nodescope.records.action_words import describe_action, describe_step
from nodescope.records.view import View
from nodescope.records.view_forms import render_command, view_document
from nodescope.wall_time import format_moment

MOST_ALSO = 20  # symptoms of one incident: a driver may repeat itself for long

Data = dict[str, object]  # a view or an action, in its own JSON form


class MissingDocument(TypedDict):
    """A thing that was not recorded."""

    what: str
    consequence: str
    hint: str
    view: Data | None


class SymptomDocument(TypedDict):
    """One symptom; the page adds when and where to look, in its own units."""

    kind: str
    time: str
    time_ns: int
    from_ns: int | None  # where it has a length; the time is then its end
    subject: str
    statement: str
    cpu: int | None
    time_ms: NotRequired[float]
    from_ms: NotRequired[float]
    look: NotRequired[Data]


class LinkDocument(TypedDict):
    """One link, with the view that shows it as a command and as data."""

    kind: str
    subject: str
    statement: str
    strength: float
    show: str
    view: Data | None
    refute: NotRequired[str]
    look: NotRequired[Data]
    address: NotRequired[str]


class RuledOutDocument(TypedDict):
    """Something that is not the cause."""

    name: str
    statement: str
    show: str
    view: Data | None


class StepDocument(TypedDict):
    """Something that helps: in words, as a command where there is one, and as data."""

    statement: str
    command: str | None
    action: Data


class ChainDocument(TypedDict):
    """One explanation."""

    confidence: float
    root: dict[str, str]
    place: bool  # the root is where it happened, and not known to be the cause
    mechanism: str | None
    meaning: str | None
    links: list[LinkDocument]
    weakest: str
    refute: str
    arithmetic: str | None
    steps: list[StepDocument]
    check: list[str]
    check_views: list[Data]
    fixes: list[str]
    fix_steps: list[StepDocument]


class FindingDocument(TypedDict):
    """One incident with what explains it."""

    symptom: SymptomDocument
    also: list[SymptomDocument]
    also_left_off: int
    repeats: list[str]
    unfollowed: int
    ends: MissingDocument | None
    recurring: list[str]
    hidden: str | None
    chains: list[ChainDocument]
    ruled_out: list[RuledOutDocument]
    repeats_ms: NotRequired[list[float]]


class OwnerDocument(TypedDict):
    """Whose condition it is."""

    kind: str
    name: str


class ConditionDocument(TypedDict):
    """Something that lasts."""

    kind: str
    owner: OwnerDocument
    severity: str
    since: str | None
    statement: str
    trend: str
    steps: list[StepDocument]
    show: str
    look: NotRequired[Data]


DiagnosisDocument = TypedDict(
    "DiagnosisDocument",
    {
        "from": str,
        "from_ns": int,
        "to": str,
        "to_ns": int,
        "boot": str | None,
        "findings": list[FindingDocument],
        "conditions": list[ConditionDocument],
        "missing": list[MissingDocument],
        "from_ms": NotRequired[float],
        "to_ms": NotRequired[float],
        "left_off": NotRequired[bool],
    },
)


def diagnosis_document(diagnosis: Diagnosis) -> DiagnosisDocument:
    """Return the shape that docs/diagnosis.md describes."""
    return {
        "from": format_moment(diagnosis.from_ns),
        "from_ns": diagnosis.from_ns,
        "to": format_moment(diagnosis.to_ns),
        "to_ns": diagnosis.to_ns,
        "boot": diagnosis.boot,
        "findings": [_finding(each, diagnosis.archive) for each in diagnosis.findings],
        "conditions": [_condition(each, diagnosis.archive) for each in diagnosis.conditions],
        "missing": [_missing(each, diagnosis.archive) for each in diagnosis.missing],
    }


def _finding(finding: Finding, archive: Path | None) -> FindingDocument:
    return {
        "symptom": _symptom(finding.symptom),
        "also": [_symptom(each) for each in finding.also[:MOST_ALSO]],
        "also_left_off": max(0, len(finding.also) - MOST_ALSO),
        "repeats": [format_moment(time_ns) for time_ns in finding.repeats],
        "unfollowed": finding.unfollowed,
        "ends": None if finding.ends is None else _missing(finding.ends, archive),
        "recurring": finding.recurring,
        "hidden": finding.hidden,
        "chains": [_chain(each, archive) for each in finding.chains],
        "ruled_out": [_ruled_out(each, archive) for each in finding.ruled_out],
    }


def _condition(condition: Condition, archive: Path | None) -> ConditionDocument:
    since_ns = condition.since_ns
    return {
        "kind": condition.kind,
        "owner": {"kind": condition.owner.kind, "name": condition.owner.name},
        "severity": condition.severity,
        "since": None if since_ns is None else format_moment(since_ns),
        "statement": statement_of(condition),
        "trend": condition.trend,
        "steps": [_step(each, archive) for each in condition.steps],
        "show": render_command(condition.show, archive),
    }


def _missing(missing: Missing, archive: Path | None) -> MissingDocument:
    return {
        "what": missing.what,
        "consequence": missing.consequence,
        "hint": hint_of(missing, archive),
        "view": None if missing.show is None else view_document(missing.show),
    }


def _shown(view: View | None, archive: Path | None) -> tuple[str, Data | None]:
    """Return a view twice: as the command that shows it, and as data."""
    if view is None:
        return "", None
    return render_command(view, archive), view_document(view)


def _ruled_out(ruled_out: RuledOut, archive: Path | None) -> RuledOutDocument:
    show, view = _shown(ruled_out.show, archive)
    return {
        "name": ruled_out.name,
        "statement": ruled_out.statement,
        "show": show,
        "view": view,
    }


def _symptom(symptom: Symptom) -> SymptomDocument:
    return {
        "kind": symptom.kind,
        "time": format_moment(symptom.time_ns),
        "time_ns": symptom.time_ns,
        "from_ns": symptom.from_ns,
        "subject": symptom.subject,
        "statement": symptom.statement,
        "cpu": symptom.cpu,
    }


def _chain(chain: Chain, archive: Path | None) -> ChainDocument:
    weakest = chain.weakest
    return {
        "confidence": round(chain.confidence, 3),
        "root": {"kind": chain.root.kind, "name": chain.root.name},
        "place": chain.is_place,
        "mechanism": chain.mechanism,
        "meaning": chain.meaning or None,
        "links": [_link(each, archive) for each in chain.links],
        "weakest": weakest.kind,
        "refute": weakest.refute,
        "arithmetic": chain.arithmetic,
        "steps": [_step(each, archive) for each in chain.steps],
        "check": [render_command(each, archive) for each in chain.check],
        "check_views": [view_document(each) for each in chain.check],
        "fixes": [describe_action(each) for each in chain.fixes],
        "fix_steps": [_step(each, archive) for each in chain.fixes],
    }


def _step(action: Action, archive: Path | None) -> StepDocument:
    step = describe_step(action, archive)
    return {
        "statement": step.statement,
        "command": step.command,
        "action": action_document(action),
    }


def _link(link: Link, archive: Path | None) -> LinkDocument:
    show, view = _shown(link.show, archive)
    return {
        "kind": link.kind,
        "subject": link.subject,
        "statement": link.statement,
        "strength": round(link.strength, 2),
        "show": show,
        "view": view,
    }
