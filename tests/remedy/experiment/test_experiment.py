from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from nodescope.cli.main import main
from nodescope.errors import UsageError
from nodescope.remedy.experiment.design import CandidateNode, design_experiment
from nodescope.remedy.experiment.files import read_design, read_exposures, read_nodes
from nodescope.remedy.experiment.reports import design_document, render_design
from nodescope.remedy.experiment.status import DayOfNode, judge_experiment

NODES = [
    CandidateNode(f"node{at:03d}", "ab"[at % 2], float(at * 7 % 300), 1, 667.0) for at in range(60)
]


def test_arms_are_even_in_every_stratum_and_the_seed_repeats_them() -> None:
    design = design_experiment(NODES, ["huge-pages", "the-fix"], 0.2, 0.8, 7)
    assert [design.count(arm) for arm in ("control", "huge-pages", "the-fix")] == [20, 20, 20]
    strata = Counter((each.stratum, each.arm) for each in design.assignments)
    for stratum in {each.stratum for each in design.assignments}:
        counts = [strata[stratum, arm] for arm in ("control", *design.arms)]
        assert max(counts) - min(counts) <= 1
    assert design == design_experiment(NODES[::-1], ["huge-pages", "the-fix"], 0.2, 0.8, 7)
    other = design_experiment(NODES, ["huge-pages", "the-fix"], 0.2, 0.8, 8)
    assert design.assignments != other.assignments


def test_the_time_it_takes_comes_from_the_past() -> None:
    design = design_experiment(NODES, ["the-fix"], 0.2, 0.8, 1)
    assert design.control_events == pytest.approx(13, abs=0.5)
    assert design.hours_needed == pytest.approx(13 * 667 / 30, rel=0.05)
    assert "one event per 667 node-hours" in render_design(design)
    unknown = design_experiment([CandidateNode(each.name) for each in NODES], ["x"], 0.2, 0.8, 1)
    assert unknown.hours_needed is None


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(UsageError, match="3 nodes for 2 arms"):
        design_experiment(NODES[:3], ["the-fix"], 0.2, 0.8, 1)
    with pytest.raises(UsageError, match="named twice"):
        design_experiment(NODES, ["control"], 0.2, 0.8, 1)
    with pytest.raises(UsageError, match="same name"):
        design_experiment([*NODES, NODES[0]], ["a"], 0.2, 0.8, 1)


def simulate(ratio: float, days: int = 60, seed: int = 5) -> list[DayOfNode]:
    chance = random.Random(seed)
    design = design_experiment(NODES, ["the-fix"], 0.2, 0.8, 1)
    arms = {each.node: each.arm for each in design.assignments}
    return [
        DayOfNode(
            node, f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}", 24.0,
            int(chance.random() < 0.03 * (ratio if arm == "the-fix" else 1)),
        )
        for day in range(days)
        for node, arm in arms.items()
    ]  # fmt: skip


def test_an_arm_that_helps_is_found_and_one_that_does_nothing_is_not() -> None:
    design = design_experiment(NODES, ["the-fix"], 0.2, 0.8, 1)
    (helps,) = judge_experiment(design, simulate(0.05)).comparisons
    assert helps.advice == "stop: it helps"
    assert helps.ratio is not None
    assert helps.ratio_low < helps.ratio < helps.ratio_high < 1
    (nothing,) = judge_experiment(design, simulate(1.0)).comparisons
    assert not nothing.shown
    assert nothing.advice == "stop: no such effect"
    (early,) = judge_experiment(design, simulate(0.05, days=2)).comparisons
    assert early.advice == "go on"
    (none,) = judge_experiment(design, []).comparisons
    assert none.advice == "no data"


def test_nodes_without_data_and_strangers_are_named() -> None:
    design = design_experiment(NODES, ["the-fix"], 0.2, 0.8, 1)
    status = judge_experiment(design, [DayOfNode("elsewhere", "2026-01-01", 24, 3)])
    assert status.strangers == ("elsewhere",)
    assert len(status.silent) == 60


def test_from_files_to_a_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = tmp_path / "nodes.csv"
    lines = [f"{n.name},{n.zone},{n.boot_age_h},{n.events},{n.node_hours}" for n in NODES]
    nodes.write_text("\n".join(["name,zone,boot_age_h,events,node_hours", *lines]))
    assert read_nodes(nodes) == NODES
    asked = ["experiment", "plan", "--nodes", str(nodes), "--arm", "the-fix", "--seed", "1"]
    assert main([*asked, "--json"]) == 0
    plan = tmp_path / "plan.json"
    plan.write_text(capsys.readouterr().out)
    design = design_experiment(NODES, ["the-fix"], 0.2, 0.8, 1)
    assert read_design(plan) == design
    assert json.loads(plan.read_text()) == json.loads(json.dumps(design_document(design)))
    events = tmp_path / "events.json"
    events.write_text(
        json.dumps([
            {"node": e.node, "day": e.day, "node_hours": e.node_hours, "events": e.events}
            for e in simulate(0.05)
        ])
    )  # fmt: skip
    assert len(read_exposures(events)) == 3600
    assert main(["experiment", "status", str(plan), str(events)]) == 0
    assert "the-fix against control: stop: it helps" in capsys.readouterr().out
    assert main(["experiment", "status", str(plan), str(events), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["comparisons"][0]["shown"] is True
    assert main([*asked, "--reduction", "1.2"]) == 1
    assert main(["experiment", "templates"]) == 0
    assert "interrupt-pinning" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    ["name,zone\n,a\n", '[{"name": "a", "events": "many"}]', "[1]", "{}", "[{", "name\na\n"],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "nodes.txt"
    path.write_text(content)
    asked = ["experiment", "plan", "--nodes", str(path), "--arm", "x"]
    assert main(asked) == 2


def test_events_that_were_not_counted_are_not_none(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("node,day,node_hours\na,2026-11-01,24\n")
    with pytest.raises(UsageError, match="row 1 has no events"):
        read_exposures(path)
