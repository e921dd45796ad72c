"""Every scenario run for real, at small strength, and diagnosed from its recording alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodescope.analysis.window import Event, Extent, Window, read_events
from nodescope.archive.reader import Archive
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.mechanism import classify
from nodescope.errors import NodescopeError
from nodescope.lab.catalogue import SCENARIOS, SMALL
from nodescope.lab.judging import judge, solve
from nodescope.lab.limits import check
from nodescope.lab.running import run
from nodescope.lab.scenario import Truth
from nodescope.lab.truth_file import truth_path

pytestmark = [pytest.mark.root, pytest.mark.live]

EVENTS = {"starved-nic": "core_starved"}  # what the recording must have of the held core
# What a decoy must have done most of the time on its core: one that does not come about
# shows nothing.
MECHANISMS = {
    "page-faults": "page_faults", "huge-pages": "huge_page_clearing", "compaction": "compaction",
    "locks": "lock_contention",
}  # fmt: skip
TWINS = ("starved-nic",)  # the rest: `python -m benchmarks lab`


def read_all(archive: Path) -> list[Event]:
    segments = Archive.open(archive).segments()
    extent = Extent(segments)
    return list(read_events(segments, Window(extent.from_ns, extent.to_ns)))


def share_of(mechanism: str, archive: Path, truth: Truth) -> float:
    """The share of a mechanism in what the culprit did on its core."""
    segments = Archive.open(archive).segments()
    extent = Extent(segments)
    window = Window(extent.from_ns, extent.to_ns)
    stacks = [
        stack
        for stack in Case(segments, window).stacks(window, truth.cpu)
        if stack.comm in truth.roots
    ]
    known = [(classify(stack.frames), stack.samples) for stack in stacks]
    mine = sum(samples for found, samples in known if found and found.name == mechanism)
    return mine / max(1, sum(samples for _, samples in known))


def run_and_judge(name: str, archive: Path, *, healthy: bool) -> None:
    scenario = SCENARIOS[name]
    try:
        check(scenario, SMALL.get(name, scenario.strength), consent=False)
    except NodescopeError as error:
        pytest.skip(str(error))
    truth = run(
        scenario, archive, strength=SMALL.get(name), healthy=healthy, before_s=3, after_s=1.5
    )
    verdict = judge(truth, solve(archive))
    if not verdict.right and not truth.happened:
        pytest.skip(f"the machine let the lab have {truth.held:.0%} of the core it was to hold")
    assert verdict.right, verdict.said
    if name in EVENTS and not healthy:
        assert (EVENTS[name], truth.cpu) in [(each.kind, each.cpu) for each in read_all(archive)]
    if name in MECHANISMS and not healthy:
        assert share_of(MECHANISMS[name], archive, truth) > 0.5
    assert json.loads(truth_path(archive).read_text())["scenario"] == name


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_right_cause_or_none_is_named(name: str, tmp_path: Path) -> None:
    run_and_judge(name, tmp_path / "archive", healthy=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", TWINS)
def test_a_healthy_twin_is_silent(name: str, tmp_path: Path) -> None:
    run_and_judge(name, tmp_path / "archive", healthy=True)
