"""An audit as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nodescope.judgement.verdict import VERDICTS, Audit, AuditVerdict
from nodescope.pictures.text import visible
from nodescope.records.json import Json, JsonObject
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.judgement.recorded_audit import RecordedAudit
    from nodescope.records.node_tables import UnitRow


def render_audit(audit: Audit, *, recorded: bool = False) -> str:
    """Return the verdicts, the worst first, and what could not be seen."""
    unseen = "Not recorded" if recorded else "Not seen"
    missing = f"\n\n{unseen}: {'; '.join(audit.not_observed)}." if audit.not_observed else ""
    if audit.findings:
        return f"{render_findings(audit.findings)}{missing}"
    if audit.unjudged:
        whose = ", ".join(audit.unjudged)
        return f"UNKNOWN: nothing was found, but this could not be judged: {whose}.{missing}"
    where = "of what was recorded " if recorded else "of what was seen " if missing else ""
    return f"nothing {where}fails, loops, is held back or runs for nobody{missing}"


def render_findings(findings: Sequence[AuditVerdict]) -> str:
    """Return a paragraph for each verdict, the worst first."""
    lines: list[str] = []
    for verdict, meaning in VERDICTS.items():
        named = [each for each in findings if each.verdict == verdict]
        if named:
            lines += ["", f"{verdict}: {meaning}"]
            for each in named:
                lines += [f"  {each.kind} {each.name}", f"    {each.reason}"]
                lines += [f"    {line}" for line in _shown(each)]
    return "\n".join(lines[1:])


def _shown(finding: AuditVerdict) -> list[str]:
    """The evidence a person would ask for next."""
    evidence = finding.evidence
    parts = []
    if evidence.get("starts") and finding.kind == "unit":
        parts.append(
            f"{evidence['starts']} starts since boot, {evidence.get('failures', 0)} failures, "
            f"{evidence.get('successes', 0)} successes"
        )
    asked = ("command", "last_line", "dependency", "cgroup", "fragment", "cgroup_parent")
    shown = {name: evidence[name] for name in asked if evidence.get(name)}
    return parts + [f"{name.replace('_', ' ')}: {value}" for name, value in shown.items()]


def audit_document(audit: Audit) -> dict[str, Json]:
    """Return the document of `--json`; `healthy` is null where that is not known."""
    return {
        "healthy": audit.healthy,
        "findings": [*findings_document(audit.findings)],
        "not_observed": list(audit.not_observed),
    }


def findings_document(findings: Sequence[AuditVerdict]) -> list[JsonObject]:
    """Return findings for `--json`."""
    return [
        {
            "kind": each.kind,
            "name": each.name,
            "verdict": each.verdict,
            "reason": each.reason,
            "evidence": dict(each.evidence),
        }
        for each in findings
    ]


# -- recorded units ------------------------------------------------------------------


def render_units(units: Sequence[UnitRow]) -> str:
    """Return a paragraph for each recorded unit; what was not recorded is left out."""
    return "\n".join(line for unit in units for line in _unit(unit))


def _unit(unit: UnitRow) -> list[str]:
    state = " ".join(
        part for part in (unit.active, f"({unit.sub})" if unit.sub else None) if part is not None
    )
    counts = ", ".join(
        f"{name} {value:,}"
        for name in ("starts", "failures", "successes", "restarts")
        if (value := getattr(unit, name)) is not None
    )
    why = unit.why_not_started
    facts = (
        f"as recorded at {format_moment(unit.time_ns)}",
        state and f"state: {state}",
        unit.result and f"last result: {unit.result}",
        counts and f"since boot: {counts}",
        _origin(unit),
        why and why != "started" and f"not started: {why}",
        unit.cgroup and f"cgroup: {unit.cgroup}",
    )
    return [f"unit {visible(unit.unit)}", *(f"  {visible(fact, 4096)}" for fact in facts if fact)]


def _origin(unit: UnitRow) -> str:
    facts = (
        unit.file_state,
        unit.preset and f"preset: {unit.preset}",
        unit.vendor and f"from {unit.vendor}",
        unit.wanted_by and f"wanted by {unit.wanted_by}",
    )
    return "; ".join(fact for fact in facts if fact)


def recorded_document(recorded: RecordedAudit, units: Sequence[UnitRow]) -> dict[str, Json]:
    """Return the document of `--at --json`, with the facts of the units asked for."""
    return {
        "at": format_moment(recorded.at_ns),
        **audit_document(recorded.audit),
        "units": [_unit_document(unit) for unit in units],
    }


def _unit_document(unit: UnitRow) -> dict[str, Json]:
    facts: dict[str, Json] = {name: getattr(unit, name) for name in unit.names()}
    del facts["time_ns"]
    known = {name: value for name, value in facts.items() if value is not None}
    return {"at": format_moment(unit.time_ns), **known}
