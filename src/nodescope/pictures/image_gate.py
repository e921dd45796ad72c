"""The gate of an image as text and as a document."""

from __future__ import annotations

from nodescope.judgement.image_gate import ImageGate, count_by_package
from nodescope.judgement.image_starts import ImageStart
from nodescope.judgement.verdict import VERDICTS, AuditVerdict
from nodescope.pictures.audit import findings_document
from nodescope.pictures.text import visible
from nodescope.records.json import Json

_WIDE = 4096


def render_gate(gate: ImageGate, not_observed: tuple[str, ...], unjudged: tuple[str, ...]) -> str:
    """Return the findings by verdict, then what is allowed, on demand, or not seen."""
    lines: list[str] = []
    for verdict, meaning in VERDICTS.items():
        named = [each for each in gate.findings if each.verdict == verdict]
        if named:
            lines += [f"{verdict}: {meaning}"]
            for each in named:
                lines += _finding(each)
            lines.append("")
    if not gate.findings:
        lines += [_nothing(unjudged), ""]
    elif len(counts := count_by_package(gate.findings)) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
        lines += [f"By package: {visible(shown, _WIDE)}.", ""]
    lines += [
        f"Allowed: {visible(finding.name)} ({visible(allowance.reason, _WIDE)})"
        for finding, allowance in gate.allowed
    ]
    lines += [f"Asked for: {visible(each.name)}, by {each.asked}" for each in gate.asked]
    lines += [
        f"Does not start: {visible(each.name)} ({visible(each.kept or '')})" for each in gate.kept
    ]
    if gate.on_demand:
        names = ", ".join(visible(each.name) for each in gate.on_demand)
        lines.append(f"Starts on demand only: {names}")
    lines += [
        f"Unused entry of the allow-list: {visible(str(each))} ({visible(each.reason, _WIDE)})"
        for each in gate.unused
    ]
    if gate.base:
        lines.append(f"The base system starts {gate.base} more; they are not judged.")
    if not_observed:
        lines.append(f"Not seen: {visible('; '.join(not_observed), _WIDE)}.")
    return "\n".join(lines).strip()


def _nothing(unjudged: tuple[str, ...]) -> str:
    if unjudged:
        return f"UNKNOWN: nothing was found, but this could not be judged: {', '.join(unjudged)}."
    return "nothing fails, is held back, or starts that nobody asked for"


def _finding(finding: AuditVerdict) -> list[str]:
    chain = finding.evidence.get("chain")
    lines = [f"  {finding.kind} {visible(finding.name)}", f"    {visible(finding.reason, _WIDE)}"]
    if isinstance(chain, list) and len(chain) > 1:
        lines.append(f"    chain: {visible(' → '.join(map(str, chain)), _WIDE)}")
    fragment = finding.evidence.get("fragment")
    if fragment:
        lines.append(f"    file: {visible(str(fragment))}")
    return lines


def gate_document(
    gate: ImageGate, root: str, not_observed: tuple[str, ...], healthy: bool | None
) -> dict[str, Json]:
    """Return the document of `--format json`."""
    return {
        "version": 1,
        "root": root,
        "healthy": healthy,
        "findings": [*findings_document(gate.findings)],
        "allowed": [
            {**findings_document([finding])[0], "allowed_because": allowance.reason}
            for finding, allowance in gate.allowed
        ],
        "unused_allowances": [
            {"entry": str(each), "reason": each.reason, "number": each.line} for each in gate.unused
        ],
        "asked": [_start(each) for each in gate.asked],
        "on_demand": [_start(each) for each in gate.on_demand],
        "not_started": [_start(each) for each in gate.kept],
        "base_system": gate.base,
        "not_observed": list(not_observed),
    }


def _start(start: ImageStart) -> dict[str, Json]:
    return {
        "kind": start.kind,
        "name": start.name,
        "path": start.path,
        "package": start.package,
        "version": start.version,
        "starts": start.detail or None,
        "why_not": start.kept,
        "asked_by": start.asked,
    }
