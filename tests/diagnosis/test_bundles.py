"""Recordings of real runs of the lab on a two-core machine, kept small, with their truth.

`tools/lab-bundles` makes them: every scenario, and the healthy twin of each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.diagnose import BEFORE
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.score import judge, solve
from nodescope.lab.truth_file import read_truth
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupChurnRow

BUNDLES = Path(__file__).parent / "bundles"
RUNS = {f"{name}{'-healthy' * healthy}": (name, healthy) for name in SCENARIOS
        for healthy in (False, True)}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_is_diagnosed_as_it_was(name: str) -> None:
    bundle = BUNDLES / f"{name}.bundle"
    assert bundle.exists(), f"`tools/lab-bundles {name}` makes it"
    truth = read_truth(BUNDLES / name)
    assert (truth.scenario, truth.healthy) == RUNS[name]
    assert truth.happened
    found = solve(bundle)
    verdict = judge(truth, found)
    assert verdict.right, verdict.said
    # Everything was recorded. The kernel's log may remember an earlier run of the lab, and
    # who has the lock that others wait for does what no mechanism tells of.
    # These bundles are older than the table `limits`.
    assert {each.what for each in found.missing} <= {BEFORE, "a known mechanism", "conditions"}
    if truth.healthy:
        assert found.conditions == []


def test_no_bundle_is_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in BUNDLES.glob("*.bundle")} <= RUNS.keys()


def test_beside_an_innocent_that_loops_faster_only_what_the_leaker_leaves_is_never_released() -> (
    None
):
    truth = read_truth(BUNDLES / "loop-beside-leak")
    recording = Recording.open(BUNDLES / "loop-beside-leak.bundle")
    case = Case(recording, Window(recording.extent.from_ns, recording.extent.to_ns))
    made, unreleased = dict.fromkeys((*truth.roots, *truth.never), 0), dict[str, int]()
    for row in case.rows(CgroupChurnRow, case.window):
        if row.pattern in made:
            made[row.pattern] += row.made
            unreleased[row.pattern] = row.unreleased or 0
    (leaker,), (innocent,) = truth.roots, truth.never
    assert made[innocent] > made[leaker] > 10
    assert unreleased[leaker] >= 3
    assert unreleased[innocent] == 0


@pytest.mark.parametrize("name", RUNS)
def test_events_have_only_the_details_that_their_kinds_declare(name: str) -> None:
    recording = Recording.open(BUNDLES / f"{name}.bundle")
    events = list(recording.events(Window(0, MAX_TIME_NS)))
    assert events
    assert {each.kind: dict(each.details.others) for each in events if each.details.others} == {}
