"""The gate of an image: findings that nobody allowed, those that somebody did, and the rest.

Every finding of an audit of an image passes the allow-list, also those on units that fail or
that nothing uses. A unit has one verdict: `unasked` is the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodescope.judgement.allow_list import Allowance, AllowList
from nodescope.judgement.image_starts import ImageStart
from nodescope.judgement.verdict import AuditFinding, AuditVerdict
from nodescope.records.json import Json
from nodescope.sources.image.boot_items import When

FIRST_BOOT = "what starts on first boot"  # not judged without a target or a package database


@dataclass(frozen=True, slots=True)
class ImageGate:
    """An image's findings, and what else it starts."""

    findings: list[AuditVerdict]  # that nobody allowed
    allowed: tuple[tuple[AuditVerdict, Allowance], ...] = ()
    unused: tuple[Allowance, ...] = ()  # entries of the allow-list that allowed nothing
    on_demand: tuple[ImageStart, ...] = ()  # started when somebody calls, not by a boot
    asked: tuple[ImageStart, ...] = ()  # by an administrator's own preset
    kept: tuple[ImageStart, ...] = ()  # by a condition or a missing dependency
    base: int = 0  # how many the base system starts


def judge_image(
    findings: Sequence[AuditVerdict], starts: Sequence[ImageStart], allow: AllowList
) -> ImageGate:
    """Add what nobody asked for to an audit's findings, and take away what is allowed."""
    by_name = {start.name: start for start in starts if start.kind == "unit"}
    named = {each.name for each in findings if each.kind == "unit"}
    every: list[tuple[AuditVerdict, ImageStart | None]] = [
        _with_start(each, by_name.get(each.name))
        for each in findings
        if not _is_wanted(each, by_name.get(each.name))
    ]
    every += (
        (describe_start(start), start)
        for start in starts
        if start.unasked and not (start.kind == "unit" and start.name in named)
    )
    rest: list[AuditVerdict] = []
    allowed = []
    for finding, known in every:
        allowance = allow.find(_facts(finding, known))
        if allowance is None:
            rest.append(finding)
        else:
            allowed.append((finding, allowance))
    apart = [start for start in starts if not start.base]
    return ImageGate(
        rest,
        tuple(allowed),
        tuple(allow.unused),
        tuple(each for each in apart if each.when is When.DEMAND and not each.kept),
        tuple(each for each in apart if each.asked),
        tuple(each for each in apart if each.kept),
        sum(each.base and not each.kept for each in starts),
    )


def _is_wanted(finding: AuditVerdict, start: ImageStart | None) -> bool:
    """Return whether a unit that nothing else uses is the base system's, or was asked for."""
    wanted = start is not None and (start.base or start.asked is not None)
    return wanted and finding.kind == "unit" and finding.verdict == "unused"


def _with_start(
    finding: AuditVerdict, start: ImageStart | None
) -> tuple[AuditVerdict, ImageStart | None]:
    """Add to another finding on a unit what is known of its start."""
    if start is None or not start.unasked or finding.kind != "unit":
        return finding, start
    evidence = {**describe_start(start).evidence, **finding.evidence}
    reason = f"{finding.reason}; {start.how}"
    return AuditFinding(finding.name, finding.verdict, reason, evidence), start


def _facts(finding: AuditVerdict, start: ImageStart | None) -> dict[str, str | None]:
    facts: dict[str, str | None] = {"name": finding.name, "kind": finding.kind}
    if start is not None:
        facts |= {"package": start.package, "path": start.path, "origin": start.origin}
    return facts


def describe_start(start: ImageStart) -> AuditFinding:
    """Return the finding on something that starts and nobody asked for."""
    occasion = "runs on a schedule" if start.when is When.SCHEDULE else "starts on first boot"
    detail = f" ({start.detail})" if start.detail else ""
    parts = [f"{occasion}{detail}: {start.how}"]
    if start.automatic:
        parts.append(f"its package was installed as a dependency{_of(start.needed_by)}")
    if start.unsure:
        parts.append(f"only if {' and '.join(start.unsure)} holds there")
    evidence: dict[str, Json] = {
        "when": str(start.when),
        "chain": list(start.chain),
        "origin": start.origin,
        "how": start.how,
        "package": start.package,
        "version": start.version,
        "installed_as_dependency": start.automatic,
        "needed_by": list(start.needed_by),
        "fragment": start.path,
        "line": start.line,
        "starts": start.detail or None,
        "conditions": list(start.unsure),
    }
    return AuditFinding(start.name, "unasked", "; ".join(parts), evidence, start.kind)


def _of(needed_by: Sequence[str]) -> str:
    shown = ", ".join(needed_by[:3])
    return f" of {shown}" if shown else ""


def count_by_package(findings: Sequence[AuditVerdict]) -> Mapping[str, int]:
    """Return how many findings each package has; those of no package count as `no package`."""
    counts: dict[str, int] = {}
    for each in findings:
        package = str(each.evidence.get("package") or "no package")
        counts[package] = counts.get(package, 0) + 1
    return counts
