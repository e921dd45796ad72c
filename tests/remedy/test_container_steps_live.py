"""Steps on containers of a real dockerd: taken, standing, and undone to what inspect said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.remedy.guarded_node import GuardedNode
from tests.waiting import wait_for

from nodescope.errors import RemedyError, UsageError
from nodescope.records.action import Action, Target
from nodescope.records.json import Json
from nodescope.remedy.actions.catalogue import find_operation
from nodescope.remedy.plan import PlanStep, StepName
from nodescope.remedy.planner import Wishes, make_plan
from nodescope.remedy.proposals import Proposal, Proposals

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2", "docker.io", "busybox-static"),
    pytest.mark.timeout(600),
]

_SLEEPS = ["sh", "-c", "trap exit TERM; while :; do sleep 0.1; done"]


def _step(kind: StepName, name: str, **arguments: str) -> PlanStep:
    target = Target("container", name, runtime="docker")
    return PlanStep(kind, target, "a test", arguments, (), (), "as it was")


def _settings(node: GuardedNode, name: str) -> Mapping[str, Json]:
    """Return all that inspect says and that is not about a single run."""
    inspected = dict(node.inspect(name))
    state = inspected.pop("State")
    assert isinstance(state, dict)
    for of_a_run in ("RestartCount", "ResolvConfPath", "NetworkSettings"):
        inspected.pop(of_a_run, None)
    return {**inspected, "on": state["Status"] in ("running", "restarting")}


def _is_on(node: GuardedNode, name: str) -> bool:
    return bool(_settings(node, name)["on"])


def test_a_loop_is_ended_and_brought_back(node: GuardedNode) -> None:
    node.run("rounds", ["sh", "-c", "exit 9"], restart="on-failure")
    wait_for(lambda: _limit_retries(node, "rounds"), "dockerd takes the number of retries")
    wait_for(lambda: node.inspect("rounds")["RestartCount"] in range(3, 9999), "it loops")
    before = _settings(node, "rounds")
    steps = [
        _step("set_restart_policy", "rounds", policy="no"),
        _step("stop_container", "rounds", timeout_s="5"),
    ]
    taken = []
    for step in steps:
        operation = find_operation(step.kind)
        assert operation.check(step, node.access) is None
        captured = operation.capture(step, node.access)
        after = operation.apply(step, node.access, captured)
        assert operation.stands(step, node.access, captured) == "after"
        taken.append((operation, step, captured, after))
    assert not _is_on(node, "rounds")
    for operation, step, captured, after in reversed(taken):
        outcome = operation.undo(step, node.access, captured, after)
        assert outcome.left_alone == ()
    wait_for(lambda: node.inspect("rounds")["RestartCount"] in range(2, 9999), "it loops again")
    # Between two rounds of a loop it may be seen in either state.
    assert {**_settings(node, "rounds"), "on": before["on"]} == before
    node.docker.ask("DELETE", "/containers/rounds?force=1")


def test_a_container_that_ran_runs_again_after_undo(node: GuardedNode) -> None:
    node.run("runner", _SLEEPS, restart="unless-stopped")
    before = _settings(node, "runner")
    step = _step("stop_container", "runner", timeout_s="5")
    operation = find_operation("stop_container")
    captured = operation.capture(step, node.access)
    assert operation.stands(step, node.access, captured) == "before"
    after = operation.apply(step, node.access, captured)
    assert node.inspect("runner")["State"]["Status"] == "exited"  # type: ignore[index, call-overload]
    operation.undo(step, node.access, captured, after)
    assert _settings(node, "runner") == before
    # It runs already: the second undo touches nothing.
    outcome = operation.undo(step, node.access, captured, after)
    assert outcome.restored == ("container runner is running, as before",)
    node.docker.ask("DELETE", "/containers/runner?force=1")


def test_a_limit_is_raised_and_set_back(node: GuardedNode) -> None:
    node.run("limited", _SLEEPS, Memory=64 << 20, PidsLimit=50)
    before = _settings(node, "limited")
    for arguments, field, wanted in (
        ({"limit": "memory", "times": "2"}, "Memory", 128 << 20),
        ({"limit": "tasks", "value": "90"}, "PidsLimit", 90),
    ):
        step = _step("set_container_limit", "limited", **arguments)
        operation = find_operation("set_container_limit")
        assert operation.check(step, node.access) is None
        captured = operation.capture(step, node.access)
        after = operation.apply(step, node.access, captured)
        assert operation.stands(step, node.access, captured) == "after"
        assert node.inspect("limited")["HostConfig"][field] == wanted  # type: ignore[index, call-overload]
        operation.undo(step, node.access, captured, after)
        assert operation.stands(step, node.access, captured) == "before"
    assert _settings(node, "limited") == before
    node.docker.ask("DELETE", "/containers/limited?force=1")


def test_what_could_not_be_undone_is_refused(node: GuardedNode) -> None:
    limit = find_operation("set_container_limit")
    step = _step("set_container_limit", "batch", limit="memory", value=str(64 << 20))
    assert "could not take a new one away" in (limit.check(step, node.access) or "")
    node.run("passing", _SLEEPS, AutoRemove=True)
    stop = find_operation("stop_container")
    refused = stop.check(_step("stop_container", "passing"), node.access)
    assert "(--rm)" in (refused or "")
    node.docker.ask("DELETE", "/containers/passing?force=1")


def test_a_change_by_somebody_else_is_left_alone(node: GuardedNode) -> None:
    node.run("shared", _SLEEPS, restart="always")
    step = _step("set_restart_policy", "shared", policy="no")
    operation = find_operation("set_restart_policy")
    captured = operation.capture(step, node.access)
    after = operation.apply(step, node.access, captured)
    theirs: Json = {"RestartPolicy": {"Name": "unless-stopped"}}
    node.docker.ask("POST", "/containers/shared/update", theirs)
    assert operation.stands(step, node.access, captured) == "other"
    outcome = operation.undo(step, node.access, captured, after)
    assert outcome.restored == ()
    assert "unless-stopped" in outcome.left_alone[0]
    node.docker.ask("DELETE", "/containers/shared?force=1")
    assert operation.stands(step, node.access, captured) == "other"
    with pytest.raises(RemedyError, match="no container"):
        operation.capture(step, node.access)


def test_declared_elsewhere_is_refused_with_the_place(node: GuardedNode) -> None:
    operation = find_operation("stop_container")
    pod = operation.check(_step("stop_container", "k8s_proxy"), node.access)
    assert "pod kube-system/proxy-x7" in (pod or "")
    within = Target("container", "web", "default/web-5bfc566559-4gq8g", "containerd")
    step = PlanStep("stop_container", within, "", {}, (), (), "")
    assert "the deployment web" in (operation.check(step, node.access) or "")


def test_one_that_is_made_anew_is_refused_and_its_maker_named(node: GuardedNode) -> None:
    """A unit removes and makes its container again: every id is new, no counter counts."""
    wait_for(lambda: _made(node) >= 4, "the supervisor made its container often enough")
    step = _step("stop_container", "made-anew")
    operation = find_operation("stop_container")
    refused = wait_for(lambda: operation.check(step, node.access), "there is one to refuse")
    if "has no container" in refused:  # between two rounds
        refused = wait_for(lambda: _refused_by_maker(node, step), "it is there")
    assert "made anew" in refused
    assert "stop that unit instead" in refused
    assert "maker.service" in refused
    assert "monitor.service" not in refused  # connected all the time, and names the container


def test_a_plan_stops_the_maker_and_not_what_it_makes(node: GuardedNode) -> None:
    wait_for(lambda: _made(node) >= 4, "the supervisor made its container often enough")
    target = Target("container", "made-anew", runtime="docker")
    proposals = Proposals((Proposal(Action("stop_container", target), "it loops"),))
    plan = make_plan(proposals, node.access, Wishes())
    named = {(step.kind, step.target.name) for step in plan.steps}
    assert ("stop_unit", "maker.service") in named
    assert ("disable_unit", "maker.service") in named
    assert "made-anew" not in {name for _, name in named}


def test_a_plan_never_names_a_needed_one(node: GuardedNode) -> None:
    """What a diagnosis might propose in error, beside what it should: each kind of evidence."""
    units = ("store", "deep", "web", "uplink", "volume", "named", "docker", "kubelet", "dbus",
             "flight", "ecs", "leaky")  # fmt: skip
    containers = ("page", "net", "k8s_proxy", "looping")
    proposed = [
        Proposal(Action("stop_unit", Target("unit", f"{name}.service")), "a test") for name in units
    ] + [
        Proposal(Action("stop_container", Target("container", name, None, "docker")), "a test")
        for name in containers
    ]
    plan = make_plan(Proposals(tuple(proposed)), node.access, Wishes())
    needed = {f"{name}.service" for name in units[:-2]} | set(containers[:-1])
    assert needed <= {each.target.name for each in plan.refused}
    named = {step.target.name for step in plan.steps}
    assert named == {"ecs.service", "leaky.service", "looping"}


def test_a_timer_of_a_needed_one_is_refused_with_it(node: GuardedNode) -> None:
    wish = Proposal(Action("stop_unit", Target("unit", "store.service")), "a test")
    plan = make_plan(Proposals((wish,)), node.access, Wishes())
    assert plan.steps == ()
    overrides = {each.target.name: each.override for each in plan.refused}
    assert overrides == {"store.service": "store.service", "store.timer": "store.service"}
    known = make_plan(Proposals((wish,)), node.access, Wishes(i_know=frozenset({"store.service"})))
    assert {step.target.name for step in known.steps} == {"store.service", "store.timer"}


def _limit_retries(node: GuardedNode, name: str) -> bool:
    """Ask for a number of retries; dockerd refuses while a round ends."""
    policy: Json = {"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 5000}}
    try:
        node.docker.ask("POST", f"/containers/{name}/update", policy)
    except UsageError:
        return False
    return True


def _refused_by_maker(node: GuardedNode, step: PlanStep) -> str | None:
    refused = find_operation("stop_container").check(step, node.access)
    return refused if refused is not None and "made anew" in refused else None


def _made(node: GuardedNode) -> int:
    shown = node.root / "run/made-anew"
    return len(shown.read_text().splitlines()) if shown.exists() else 0
