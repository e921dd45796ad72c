"""A moment somebody asks about near which nothing was reported: what stands out in it.

That is a core in the kernel for a second or more, if that is rare on this node, else a
process that has clearly more of the node than in the half hour before. A healthy node has
neither; there nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodescope.analysis.compare import BASELINE_NS, Change, Comparison
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Symptom
from nodescope.diagnosis.links.baseline import APART_NS, compare_before, rose
from nodescope.diagnosis.story import Story
from nodescope.judgement.core_occupants import MOST_OF_IT, count_cores_of, derive_kernel_share
from nodescope.judgement.pegged_cores import BRIEF_NS, READING_RATIO, PeggedCore
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recording.window import Window

AROUND_NS = 10 * SECOND_NS
BRIEF_S = 0.9  # readings are a second apart, more or less
RARE = 0.1  # of the seconds before
LEAST_BASELINE_NS = 600 * SECOND_NS  # what is usual is not known from less


@dataclass(frozen=True, slots=True)
class Standing:
    """The thing that stands out: a core pegged by the kernel, or a process."""

    at_ns: int
    span: Window
    held: PeggedCore | None = None  # the core, if it was one
    usual: str = ""  # how often any core is so
    comm: str | None = None
    found: Comparison | None = None

    @property
    def symptom(self) -> Symptom:
        """The moment as what the chain starts at."""
        cpu = None if self.held is None else self.held.cpu
        subject = self.comm or f"cpu{cpu}"
        what = "process" if self.comm else "core"
        said = f"nothing was reported near the moment asked about, but this {what} stands out"
        return Symptom("moment", self.at_ns, subject, said, cpu)


def find_standing(case: Case, story: Story, at_ns: int) -> Standing | None:
    """Return what stands out around a moment; None if nothing does."""
    around = Window(at_ns - AROUND_NS, at_ns + AROUND_NS)
    return _held_core(case, at_ns, around) or _unusual_process(case, story, at_ns, around)


def _held_core(case: Case, at_ns: int, around: Window) -> Standing | None:
    """The core that was in the kernel longest, if that is rare and one process did it."""
    held = [
        each
        for each in case.pegged_cores(around, BRIEF_NS, READING_RATIO)
        if each.seconds >= BRIEF_S and _one_process(case, each)
    ]
    if not held:
        return None
    chosen = max(held, key=lambda each: each.seconds * each.share)
    before = Window(chosen.from_ns - BASELINE_NS, chosen.from_ns - APART_NS)
    most, _ = case.kernel_seconds(before)
    known = int((~np.isnan(most)).sum())
    so = int((most >= READING_RATIO).sum())
    if so > RARE * known:
        return None
    usual = f"some core was so in {so:,} of the {known:,} s before" if known else ""
    return Standing(at_ns, Window(chosen.from_ns, chosen.to_ns), chosen, usual)


def _one_process(case: Case, held: PeggedCore) -> bool:
    """Return whether one process had most of the core, or the samples cannot tell."""
    main = case.commands_on(held.window, held.cpu).find_main()
    return main is None or main.share >= MOST_OF_IT


def _unusual_process(case: Case, story: Story, at_ns: int, around: Window) -> Standing | None:
    if not case.recorded("samples"):
        return None
    found = compare_before(case, around)
    if found is None or found.windows * found.window_ns < LEAST_BASELINE_NS:
        story.lacks(
            "a baseline",
            "too little was recorded before the moment to know what is usual",
            f"ask about a moment with {format_duration(LEAST_BASELINE_NS)} before it",
        )
        return None
    flagged = [each for each in found.changes if each.flagged and rose(each)]
    grown = max((each for each in flagged if each.kind == "comm"), key=_moved, default=None)
    if grown is None:
        return None
    core = _core_of(case, around, grown.name)
    return Standing(at_ns, around, core, "", grown.name, found)


def _moved(change: Change) -> float:
    return change.window_share - change.baseline_share


def _core_of(case: Case, span: Window, comm: str) -> PeggedCore | None:
    """The core that a process had most of, if it had most of one."""
    main = count_cores_of(case.recording.samples(span), comm).find_main()
    if main is None or main.samples < MOST_OF_IT * case.commands_on(span, main.key).total:
        return None
    kernel = derive_kernel_share(case.recording.samples(span), main.key)
    return PeggedCore(main.key, span.from_ns, span.to_ns, kernel)
