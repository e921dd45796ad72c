"""Compare a recording's diagnosis with the truth of its scenario."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Chain, Diagnosis
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
    """Right is: the true root and mechanism first, or silence where there is nothing to find.

    A decoy that does hold a core may be told, by the program's own name.
    """
    chains = [each.chains[0] for each in found.findings if each.chains]
    said = "; ".join(f"{c.root.kind} {c.root.name} by {c.mechanism}" for c in chains) or (
        "a symptom without a cause" if found.findings else "nothing"
    )
    sure = chains[0].confidence if chains else None
    blamed = {c.root.name for c in chains} | {c.mechanism for c in chains}
    if blamed & set(truth.never):
        return ScenarioVerdict(False, sure, said)
    if not truth.finding:
        told = bool(truth.facts.get("may_find")) and all(is_true(truth, c) for c in chains)
        return ScenarioVerdict(not found.findings or told, sure, said)
    if not chains:
        return ScenarioVerdict(False, None, said)
    return ScenarioVerdict(is_true(truth, chains[0]), sure, said)


def is_true(truth: Truth, chain: Chain) -> bool:
    """Return whether one chain, of whatever rank, states the truth."""
    if {chain.root.name, chain.mechanism} & set(truth.never):
        return False
    if not truth.finding:
        return bool(truth.facts.get("may_find")) and chain.root.name in truth.roots
    fits = not truth.mechanisms or chain.mechanism in truth.mechanisms
    return chain.root.name in truth.roots and fits


def blames_another(found: Diagnosis) -> bool:
    """Return whether zombies, a unit or a container are blamed: wrong for a decoy."""
    chains = [each.chains[0] for each in found.findings if each.chains]
    return any(
        chain.root.kind in _OTHERS or {chain.mechanism, chain.root.name} & set(ZOMBIE_WALKS)
        for chain in chains
    )
