"""Compare a recording's diagnosis with the truth of its scenario."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Chain, Diagnosis, Finding
from nodescope.diagnosis.symptoms.subjects import cgroup_of
from nodescope.lab.ground import PREFIX
from nodescope.lab.scenario import ZOMBIE_WALKS, Truth
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

# What no decoy is of: zombies (a state), and those who run things.
_OTHERS = ("unit", "container", "pod", "state")


@dataclass(frozen=True, slots=True)
class ScenarioVerdict:
    """Right or not, how sure it was, and what it said."""

    right: bool
    confidence: float | None
    said: str


def solve(archive: Path) -> Diagnosis:
    """The diagnosis of a whole recording: a folder, or a bundle."""
    recording = Recording.open(archive)
    return diagnose(recording, Window(recording.extent.from_ns, recording.extent.to_ns))


def judge(truth: Truth, found: Diagnosis) -> ScenarioVerdict:
    """Decide whether a diagnosis states the truth, and only the truth.

    Right is: the true root and mechanism first, of an incident with the true symptom; each
    true condition with its owner; silence where there is nothing. Nobody who is innocent is
    blamed, or has a condition. A decoy that does hold a core may be told, by the program's
    own name. What happened in a cgroup that is not the lab's is not judged, but told.
    """
    others = [each for each in found.findings if is_foreign(each)]
    found = replace(found, findings=[each for each in found.findings if each not in others])
    chains = [each.chains[0] for each in found.findings if each.chains]
    sure = chains[0].confidence if chains else None
    right = not _blames_innocent(truth, found) and _lists_conditions(truth, found)
    if truth.finding:
        right = right and bool(chains) and _has_symptom(truth, found) and is_true(truth, chains[0])
    elif found.findings:
        may_find = bool(truth.facts.get("may_find"))
        right = right and may_find and all(is_true(truth, chain) for chain in chains)
    beside = f"; beside it, not the lab's: {describe_findings(others)}" if others else ""
    return ScenarioVerdict(right, sure, describe(found) + beside)


def is_foreign(finding: Finding) -> bool:
    """Decide whether an incident is of a cgroup outside the lab's: other work on the machine."""
    path = cgroup_of(finding.symptom)
    return path is not None and f"/{PREFIX}" not in path


def describe(found: Diagnosis) -> str:
    """Return what a diagnosis said: its roots, its symptoms without one, its conditions."""
    said = [describe_findings([each]) for each in found.findings]
    said += [f"condition {each.kind} of {each.owner.name}" for each in found.conditions]
    return "; ".join(said) or "nothing"


def describe_findings(findings: Sequence[Finding]) -> str:
    """Return the root of each incident, or its symptom."""
    return "; ".join(
        f"{each.chains[0].root.kind} {each.chains[0].root.name} by {each.chains[0].mechanism}"
        if each.chains
        else f"{each.symptom.kind} without a cause"
        for each in findings
    )


def _blames_innocent(truth: Truth, found: Diagnosis) -> bool:
    """Return whether somebody is blamed who must not be, or has a condition who is well."""
    chains = [each.chains[0] for each in found.findings if each.chains]
    blamed = {chain.root.name for chain in chains} | {chain.mechanism for chain in chains}
    owners = {each.owner.name for each in found.conditions}
    return bool(blamed & {*truth.never, *truth.well} or owners & {*truth.well})


def _lists_conditions(truth: Truth, found: Diagnosis) -> bool:
    """Return whether all true conditions are listed; a healthy twin has none at all."""
    if truth.healthy:
        return not found.conditions
    listed = [(each.kind, each.owner.kind, each.owner.name) for each in found.conditions]
    return all(
        any((kind, each.owner_kind, each.owner) in listed for kind in each.kinds)
        for each in truth.conditions
    )


def _has_symptom(truth: Truth, found: Diagnosis) -> bool:
    """Return whether the first incident has one of the true symptoms."""
    first = found.findings[0]
    kinds = {first.symptom.kind, *(each.kind for each in first.also)}
    return not truth.symptoms or bool(kinds & set(truth.symptoms))


def is_true(truth: Truth, chain: Chain) -> bool:
    """Return whether one chain, of whatever rank, states the truth."""
    if {chain.root.name, chain.mechanism} & {*truth.never, *truth.well}:
        return False
    if not truth.finding:
        return bool(truth.facts.get("may_find")) and chain.root.name in truth.roots
    fits = not truth.mechanisms or chain.mechanism in truth.mechanisms
    known = not truth.root_kinds or chain.root.kind in truth.root_kinds
    return chain.root.name in truth.roots and known and fits


def list_causes(truth: Truth, found: Diagnosis) -> list[tuple[float, bool]]:
    """Return the support of each chain that names a cause, and whether it states the truth.

    A chain that ends at a place, or at what was reported, names none: it calibrates nothing.
    """
    return [
        (chain.support, is_true(truth, chain))
        for finding in found.findings
        for chain in finding.chains
        if chain.explains and not chain.is_place and not is_foreign(finding)
    ]


def blames_another(found: Diagnosis) -> bool:
    """Return whether zombies, a unit or a container are blamed: wrong for a decoy."""
    chains = [each.chains[0] for each in found.findings if each.chains and not is_foreign(each)]
    return any(
        chain.root.kind in _OTHERS or {chain.mechanism, chain.root.name} & set(ZOMBIE_WALKS)
        for chain in chains
    )
