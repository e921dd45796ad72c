"""Conditions of a diagnosis: what lasts, beside the incidents.

A condition is put together with an incident only where they are of one thing: the incident's
root is the condition's owner, a link of its chain states the condition, or what was reported is
that the same table or file system is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nodescope.diagnosis.finding import Chain, Finding, Missing, Symptom
from nodescope.diagnosis.links.by_table import LIMIT_OF
from nodescope.judgement.condition import Condition
from nodescope.judgement.conditions import find_conditions, unobserved
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.trouble_details import FullTableDetails
from nodescope.records.view import View


def find_lasting(
    recording: Recording, window: Window, findings: Sequence[Finding]
) -> list[Condition]:
    """Return the conditions at the end of a window, each with the incidents that it explains."""
    return [_refer(each, findings) for each in find_conditions(recording, window)]


def describe_unobserved(recording: Recording, window: Window) -> list[Missing]:
    """Return the conditions that would not be seen, as one thing that is missing."""
    unseen = unobserved(recording, window)
    if not unseen:
        return []
    consequence = f"not recorded, so these would not be seen: {', '.join(unseen)}"
    return [Missing("conditions", consequence, show=View("doctor"))]


def _refer(condition: Condition, findings: Sequence[Finding]) -> Condition:
    """Return a condition that names the incidents whose chain leads to it."""
    best = [finding.chains[0] if finding.chains else None for finding in findings]
    explained = [n for n, chain in enumerate(best, 1) if chain and _explains(condition, chain)]
    shared = [
        n for n, (finding, chain) in enumerate(zip(findings, best, strict=True), 1)
        if n not in explained
        and ((chain and _is_root(condition, chain)) or _is_same_table(condition, finding.symptom))
    ]  # fmt: skip
    said = []
    if explained:
        said.append(f"explains incident {_numbers(explained)}")
    if shared:
        said.append(f"see also incident {_numbers(shared)}")
    return replace(condition, reference="; ".join(said))


def _explains(condition: Condition, chain: Chain) -> bool:
    """Decide whether a chain states the condition: its zombies, or the loop of its owner."""
    if condition.kind == "zombies":
        return any(link.kind == "state" and "zombie" in link.subject for link in chain.links)
    blamed = any(link.kind == "source" for link in chain.links)
    return blamed and condition.kind.endswith("_loop") and _is_root(condition, chain)


def _is_root(condition: Condition, chain: Chain) -> bool:
    owner, root = condition.owner, chain.root
    if owner.kind == root.kind == "pod":  # the pod, or one container of it
        return f"{owner.name} ".startswith(f"{root.name} ")
    return (owner.kind, owner.name) == (root.kind, root.name) and owner.kind != "node"


def _is_same_table(condition: Condition, symptom: Symptom) -> bool:
    """Decide whether a symptom reports that what the condition is of is full."""
    told = symptom.get(FullTableDetails)
    limit = told.limit or LIMIT_OF.get(symptom.kind)
    if limit is None or condition.kind != f"{limit}_nearly_full":
        return False
    if condition.owner.kind == "node":
        # A namespace of the network has entries of its own in a table of the node.
        return told.scope is None or told.scope == "node" or told.scope.startswith("netns ")
    return condition.owner.name in (told.scope, symptom.subject)


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
