from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Nodescope

from nodescope.lab.fix_run import FixCodes, describe_failures
from nodescope.records.action import Action, Target
from nodescope.remedy import planner
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.planner import Wishes, make_plan
from nodescope.remedy.proposals import Proposal, Proposals, wish_to_stop
from nodescope.remedy.steps.expansion import Expansion
from nodescope.sources.places import Places

BUNDLE = Path(__file__).parents[1] / "diagnosis/bundles/zombie-agent.bundle"
_DROP = PlanStep("drop_caches", Target("node"), "", {"value": "1"}, (), (), "never", ())


@pytest.fixture
def frees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NodeAccess:
    """A node without systemd, where zombies would be freed by dropping caches."""
    freed = {**planner._EXPANSIONS, "free_zombies": lambda _, node: Expansion((_DROP,))}
    monkeypatch.setattr(planner, "_EXPANSIONS", freed)
    kernel = tmp_path / "proc/sys/kernel"
    (kernel / "random").mkdir(parents=True)
    (kernel / "random/boot_id").write_text("a boot\n")
    (kernel / "hostname").write_text("node\n")
    return NodeAccess(Places(tmp_path))


def _proposed(*actions: Action) -> Proposals:
    return Proposals(tuple(Proposal(each, "a test") for each in actions))


_FREE = Action("free_zombies", Target("node"))


def test_a_recording_of_another_boot_is_not_planned_on_this_node(nodescope: Nodescope) -> None:
    result = nodescope("fix", "plan", "--archive", BUNDLE)
    assert result.code == 2
    assert result.out == ""
    assert "another node, or of an earlier boot" in result.err
    assert "--unit NAME" in result.err


def test_nothing_is_freed_while_its_source_cannot_be_stopped(frees: NodeAccess) -> None:
    stop = Action("stop_unit", Target("unit", "leaky.service"))
    plan = make_plan(_proposed(stop, _FREE), frees, Wishes())
    assert plan.steps == ()
    assert [each.target.name for each in plan.refused] == ["leaky.service"]
    assert "cannot be stopped from here" in plan.refused[0].reason
    assert any("not freed while leaky.service" in each for each in plan.cannot)


def test_a_plan_that_frees_says_that_the_source_is_not_known(frees: NodeAccess) -> None:
    plan = make_plan(_proposed(Action("stop_leak", value="leaks"), _FREE), frees, Wishes())
    assert [step.kind for step in plan.steps] == ["drop_caches"]
    assert any("not known by name" in each for each in plan.cannot)


def test_a_unit_without_a_suffix_is_a_service() -> None:
    targets = [each.action.target for each in wish_to_stop(["ecs", "a.timer"], []).taken]
    assert [each.name for each in targets if each] == ["ecs.service", "a.timer"]


def test_a_fix_of_the_lab_that_failed_is_described_in_words() -> None:
    assert describe_failures(FixCodes(0, 0, 0, 0)) == []
    assert "not proven" in " ".join(describe_failures(FixCodes(0, 0, 1, 0)))
    assert "nothing was changed" in " ".join(describe_failures(FixCodes(1)))
    assert "not applied" in " ".join(describe_failures(FixCodes(0, 1, None, 0)))
    assert "fix status" in " ".join(describe_failures(FixCodes(0, 0, 0, 1)))


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [(["top", "--bogus"], "`nodescope top --help`"), (["--bogus"], "`nodescope --help`")],
)
def test_an_unknown_option_leads_to_the_help_of_its_command(
    nodescope: Nodescope, arguments: list[str], hint: str
) -> None:
    result = nodescope(*arguments)
    assert result.code == 2
    assert hint in result.err
