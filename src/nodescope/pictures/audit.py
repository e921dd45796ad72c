"""What an audit found, as text and as a document."""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.judgement.verdict import VERDICTS, AuditVerdict
from nodescope.records.json import Json


def render_findings(findings: Sequence[AuditVerdict]) -> str:
    """A paragraph for each verdict, the worst first."""
    if not findings:
        return "nothing fails, loops, is held back or runs for nobody"
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


def findings_document(findings: Sequence[AuditVerdict]) -> list[dict[str, Json]]:
    """The document of `--json`."""
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
