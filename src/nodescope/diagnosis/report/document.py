"""A diagnosis as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Link, Missing, Symptom
from nodescope.diagnosis.report.summary import hint_of
from nodescope.records.action import Action, action_document
from nodescope.records.action_words import describe_action, describe_step
from nodescope.records.view import View
from nodescope.records.view_forms import render_command, view_document
from nodescope.wall_time import format_moment

MOST_ALSO = 20  # symptoms of one incident: a driver may repeat itself for long


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The shape that docs/diagnosis.md describes."""
    return {
        "from": format_moment(diagnosis.from_ns),
        "from_ns": diagnosis.from_ns,
        "to": format_moment(diagnosis.to_ns),
        "to_ns": diagnosis.to_ns,
        "findings": [_finding(each, diagnosis.archive) for each in diagnosis.findings],
        "missing": [_missing(each, diagnosis.archive) for each in diagnosis.missing],
    }


def _finding(finding: Finding, archive: Path | None) -> dict[str, Any]:
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
        "ruled_out": [
            {"name": each.name, "statement": each.statement, **_shown(each.show, archive)}
            for each in finding.ruled_out
        ],
    }


def _missing(missing: Missing, archive: Path | None) -> dict[str, Any]:
    return {
        "what": missing.what,
        "consequence": missing.consequence,
        "hint": hint_of(missing, archive),
        "view": None if missing.show is None else view_document(missing.show),
    }


def _shown(view: View | None, archive: Path | None) -> dict[str, Any]:
    """Return a view twice: as the command that shows it, and as data."""
    if view is None:
        return {"show": "", "view": None}
    return {"show": render_command(view, archive), "view": view_document(view)}


def _symptom(symptom: Symptom) -> dict[str, Any]:
    return {
        "kind": symptom.kind,
        "time": format_moment(symptom.time_ns),
        "time_ns": symptom.time_ns,
        "subject": symptom.subject,
        "statement": symptom.statement,
        "cpu": symptom.cpu,
    }


def _chain(chain: Chain, archive: Path | None) -> dict[str, Any]:
    weakest = chain.weakest
    return {
        "confidence": round(chain.confidence, 3),
        "root": {"kind": chain.root.kind, "name": chain.root.name},
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


def _step(action: Action, archive: Path | None) -> dict[str, Any]:
    step = describe_step(action, archive)
    return {
        "statement": step.statement,
        "command": step.command,
        "action": action_document(action),
    }


def _link(link: Link, archive: Path | None) -> dict[str, Any]:
    return {
        "kind": link.kind,
        "subject": link.subject,
        "statement": link.statement,
        "strength": round(link.strength, 2),
        **_shown(link.show, archive),
    }
