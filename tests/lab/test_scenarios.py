"""Every scenario run for real, at small strength, and diagnosed from its recording alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from nodescope.archive.gaps import find_gaps
from nodescope.archive.reader import Archive
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.rules.mechanism import classify
from nodescope.errors import NodescopeError
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.refusals import check
from nodescope.lab.scenario import Truth
from nodescope.lab.score import judge, solve
from nodescope.lab.small_runs import run_small, small_strength
from nodescope.lab.truth_file import truth_path
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import TimeExtent, Window

pytestmark = [pytest.mark.root, pytest.mark.live]

TWINS = ("starved-nic",)  # the rest: `python -m benchmarks lab`, and their bundles
# One of each group that takes long; the others there, too.
SHORTEST = ("task-limit", "io-error", "realtime-hog")
LONGER = ("softirq-flood", *(name for name, each in SCENARIOS.items() if each.slow))
RUN = [name for name in SCENARIOS if name not in LONGER or name in SHORTEST]


def has_event(case: Case, truth: Truth, kind: str) -> None:
    gaps = find_gaps(case.recording.parts)
    blind_ns = max((gap.to_ns - gap.from_ns for gap in gaps if gap.source == "cores"), default=0)
    if blind_ns > SECOND_NS:  # where the other core is busy, too, it may wait for the held one
        pytest.skip(f"the machine did not run the recorder for {blind_ns / SECOND_NS:.1f} s")
    assert (kind, truth.cpu) in [(event.kind, event.cpu) for event in case.events]


def has_mechanism(case: Case, truth: Truth, name: str) -> None:
    """It is much of what the culprit did on its core."""
    stacks = [each for each in case.stacks(case.window, truth.cpu) if each.comm in truth.roots]
    known = [(classify(each.frames), each.samples) for each in stacks]
    mine = sum(samples for found, samples in known if found and found.name == name)
    assert mine > 0.25 * sum(samples for _, samples in known)
    assert mine > 0


# What the recording must have of it: a scenario that does not come about shows nothing.
EVIDENCE: dict[str, Callable[[Case, Truth], None]] = {
    "starved-nic": partial(has_event, kind="core_starved"),
    "page-faults": partial(has_mechanism, name="page_faults"),
    "huge-pages": partial(has_mechanism, name="huge_page_clearing"),
    "compaction": partial(has_mechanism, name="compaction"),
    "locks": partial(has_mechanism, name="lock_contention"),
}


def open_case(archive: Path) -> Case:
    segments = Archive.open(archive).segments()
    extent = TimeExtent(segments)
    return Case(Recording(segments), Window(extent.from_ns, extent.to_ns))


def run_and_judge(name: str, archive: Path, *, healthy: bool) -> None:
    try:
        check(SCENARIOS[name], small_strength(name), consent=False)
    except NodescopeError as error:
        pytest.skip(str(error))
    truth = run_small(name, archive, healthy=healthy)
    verdict = judge(truth, solve(archive))
    if not verdict.right and not truth.happened:
        pytest.skip(f"the machine let the lab have {truth.held:.0%} of the core it was to hold")
    if name in EVIDENCE and not healthy:
        EVIDENCE[name](open_case(archive), truth)
    assert verdict.right, verdict.said
    assert json.loads(truth_path(archive).read_text())["scenario"] == name


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_the_right_cause_or_none_is_named(name: str, tmp_path: Path) -> None:
    run_and_judge(name, tmp_path / "archive", healthy=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_a_healthy_twin_is_silent(name: str, tmp_path: Path) -> None:
    run_and_judge(name, tmp_path / "archive", healthy=True)
