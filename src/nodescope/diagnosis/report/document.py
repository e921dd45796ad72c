"""A diagnosis as JSON."""

from __future__ import annotations

from typing import Any

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Link, Missing, Symptom
from nodescope.wall_time import format_moment

MOST_ALSO = 20  # symptoms of one incident: a driver may repeat itself for long


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The shape that docs/diagnosis.md describes."""
    return {
        "from": format_moment(diagnosis.from_ns),
        "from_ns": diagnosis.from_ns,
        "to": format_moment(diagnosis.to_ns),
        "to_ns": diagnosis.to_ns,
        "findings": [_finding(each) for each in diagnosis.findings],
        "missing": [_missing(each) for each in diagnosis.missing],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "symptom": _symptom(finding.symptom),
        "also": [_symptom(each) for each in finding.also[:MOST_ALSO]],
        "also_left_off": max(0, len(finding.also) - MOST_ALSO),
        "repeats": [format_moment(time_ns) for time_ns in finding.repeats],
        "unfollowed": finding.unfollowed,
        "ends": None if finding.ends is None else _missing(finding.ends),
        "recurring": finding.recurring,
        "hidden": finding.hidden,
        "chains": [_chain(each) for each in finding.chains],
        "ruled_out": [
            {"name": each.name, "statement": each.statement, "show": each.show}
            for each in finding.ruled_out
        ],
    }


def _missing(missing: Missing) -> dict[str, Any]:
    return {"what": missing.what, "consequence": missing.consequence, "hint": missing.hint}


def _symptom(symptom: Symptom) -> dict[str, Any]:
    return {
        "kind": symptom.kind,
        "time": format_moment(symptom.time_ns),
        "time_ns": symptom.time_ns,
        "subject": symptom.subject,
        "statement": symptom.statement,
        "cpu": symptom.cpu,
    }


def _chain(chain: Chain) -> dict[str, Any]:
    weakest = chain.weakest
    return {
        "confidence": round(chain.confidence, 3),
        "root": {"kind": chain.root.kind, "name": chain.root.name},
        "mechanism": chain.mechanism,
        "meaning": chain.meaning or None,
        "links": [_link(each) for each in chain.links],
        "weakest": weakest.kind,
        "refute": weakest.refute,
        "arithmetic": chain.arithmetic,
        "steps": [{"statement": each.statement, "command": each.command} for each in chain.steps],
        "check": list(chain.check),
        "fixes": list(chain.fixes),
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "kind": link.kind,
        "subject": link.subject,
        "statement": link.statement,
        "strength": round(link.strength, 2),
        "show": link.show,
    }
