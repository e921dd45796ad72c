"""The kernel's work on a pegged core, by families of functions, and the families ruled out."""

from __future__ import annotations

from collections import Counter

from nodescope.diagnosis.case import Case, Stack
from nodescope.diagnosis.evidence_views import view_kernel_flame
from nodescope.diagnosis.finding import Link, RuledOut
from nodescope.diagnosis.links.states import rule_out_rises, rule_out_throttling
from nodescope.diagnosis.rules.mechanism import Mechanism, classify, load_mechanisms
from nodescope.diagnosis.rules.suspects import shares_of_suspects
from nodescope.diagnosis.story import Story
from nodescope.recording.window import Window
from nodescope.records.view import View

LEAST_SHARE = 0.3  # of a pegged core's samples, for a mechanism to be the reason


def add_mechanism(case: Case, story: Story) -> bool:
    """Add the link that names the kernel's work, by families of functions."""
    held, comm = story.held, story.comm
    assert held is not None
    assert comm is not None
    stacks = [s for s in case.stacks(Window(held.from_ns, held.to_ns), held.cpu) if s.kernel]
    total = sum(each.samples for each in stacks)
    if not any(each.frames for each in stacks):
        story.lacks(
            "kernel functions", "the mechanism has no name",
            "kallsyms must be readable", View("doctor"),
        )  # fmt: skip
        return False
    shares = _mechanism_shares(stacks, total)
    best = _choose(shares)
    if best is None:
        story.lacks(
            "a known mechanism", "the kernel functions are of no family we know",
            show=view_kernel_flame(held),
        )  # fmt: skip
        return False
    share, mechanism = shares[best]
    story.mechanism = mechanism
    story.links.append(_named(story, mechanism, share, _leaf(stacks, mechanism)))
    sampled = case.absence("samples", held.window)
    for name, (other, each) in sorted(shares.items(), key=lambda item: -item[1][0]):
        if name != best and other >= 0.02:
            little = other < share
            why = "that is too little to hold it" if little else "it is how the process came there"
            statement = f"{each.title}: {other:.0%} of core {held.cpu}'s kernel samples"
            said = f"{statement}; ruled out because {why}"
            story.ruled_out.append(RuledOut(name, said, absent=sampled))
    share_of = shares_of_suspects({name: value[0] for name, value in shares.items()})
    story.ruled_out += rule_out_rises(case, Window(held.from_ns, held.to_ns), share_of)
    story.ruled_out += rule_out_throttling(case, held.to_ns)
    return True


def _choose(shares: dict[str, tuple[float, Mechanism]]) -> str | None:
    """The largest share; a mere way into the kernel only if nothing that is done there counts."""
    large = [name for name, (share, _) in shares.items() if share >= LEAST_SHARE]
    return max(
        large, key=lambda name: (not shares[name][1].entry, shares[name][0], name), default=None
    )


def _mechanism_shares(stacks: list[Stack], total: int) -> dict[str, tuple[float, Mechanism]]:
    counts: Counter[str] = Counter()
    for each in stacks:
        found = classify(each.frames)
        if found is not None:
            counts[found.name] += each.samples
    known = {each.name: each for each in load_mechanisms()}
    return {name: (count / total, known[name]) for name, count in counts.items()}


def _leaf(stacks: list[Stack], mechanism: Mechanism) -> str:
    leaves: Counter[str] = Counter()
    for each in stacks:
        if each.frames and mechanism.holds(each.frames):
            leaves[each.frames[-1]] += each.samples
    return leaves.most_common(1)[0][0] if leaves else ""


def _named(story: Story, mechanism: Mechanism, share: float, leaf: str) -> Link:
    held, comm = story.held, story.comm
    assert held is not None
    return Link(
        "mechanism", mechanism.name,
        f"{comm} was {mechanism.title}: {share:.0%} of the kernel samples, most in {leaf}",
        1.0 + 4.0 * share,
        view_kernel_flame(held),
        "another family of functions in those seconds",
        frame=leaf,
    )  # fmt: skip
