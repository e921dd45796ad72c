from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.remedy.fake_steps import FakeOperation
from tests.remedy.plans import apply_plan, make_plan, make_step, undo_plan

from nodescope.errors import GuardRefused, RemedyBusy, RemedyError, StalePlan
from nodescope.remedy.apply import Consents, find_obstacles, is_own
from nodescope.remedy.journal import PlanJournal, StepAttempt, make_fixes_folder, read_journal
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.node_lock import find_working_pid, locked_node
from nodescope.remedy.plan import Fact, Plan, PlanStep, Refused
from nodescope.sources.places import Places


@pytest.fixture
def node(tmp_path: Path) -> NodeAccess:
    return NodeAccess(Places(tmp_path))


PLAN = make_plan(make_step("stop_unit", "a.service"), make_step("mask_unit", "b.service"))


def _attempts(node: NodeAccess, plan: Plan = PLAN) -> list[tuple[int, int, bool]]:
    found = read_journal(make_fixes_folder(node.unit_root) / f"{plan.id}.journal")
    return [(each.number, each.attempt, each.after is not None) for each in found]


def test_a_step_is_guarded_checked_and_captured_before_it_is_taken(node: NodeAccess) -> None:
    fake = FakeOperation()
    seen: list[str | None] = []

    def guard(step: PlanStep, _node: NodeAccess, _known: frozenset[str]) -> None:
        seen.append(step.target.name)

    apply_plan(
        PLAN,
        node,
        around=lambda moment, kind: fake.calls.append(f"{moment} {kind}"),
        guard=guard,
        operations=lambda _kind: fake,
    )
    one = [
        "check",
        "capture",
        "before intent",
        "after intent",
        "apply",
        "before done",
        "after done",
    ]
    assert fake.calls == one * 2
    assert seen == ["a.service", "b.service"]
    assert fake.values == {"a.service": "new", "b.service": "new"}
    assert _attempts(node) == [(1, 1, True), (2, 1, True)]


def test_a_finished_plan_is_not_applied_again(node: NodeAccess) -> None:
    fake = FakeOperation()
    apply_plan(PLAN, node, operations=lambda _kind: fake)
    fake.calls.clear()
    assert apply_plan(PLAN, node, operations=lambda _kind: fake) == []
    assert fake.calls == []


def test_a_run_stops_at_the_first_failure_and_continues_from_there(node: NodeAccess) -> None:
    good, bad = FakeOperation(), FakeOperation(fails="no")
    kinds: dict[Any, FakeOperation] = {"stop_unit": good, "mask_unit": bad}
    news: list[Any] = []
    with pytest.raises(RemedyError, match="no"):
        apply_plan(PLAN, node, operations=kinds.__getitem__, report=news.append)
    assert [(each.number, each.outcome) for each in news] == [
        (1, "starting"), (1, "applied"), (2, "starting"), (2, "failed"),
    ]  # fmt: skip
    bad.fails = None
    good.calls.clear()
    apply_plan(PLAN, node, operations=kinds.__getitem__)
    assert good.calls == []
    assert bad.values == {"b.service": "new"}


def test_a_step_that_was_cut_short_keeps_the_state_it_began_with(node: NodeAccess) -> None:
    fake = FakeOperation(fails="cut short")
    plan = make_plan(make_step("stop_unit", "a.service"))
    with pytest.raises(RemedyError):
        apply_plan(plan, node, operations=lambda _kind: fake)
    fake.fails, fake.values["a.service"] = None, "half"
    apply_plan(plan, node, operations=lambda _kind: fake)
    assert _attempts(node, plan) == [(1, 1, True)]
    undo_plan(plan, node, operations=lambda _kind: fake)
    assert fake.values["a.service"] == "old"


def test_what_somebody_changed_within_a_step_is_not_overwritten(node: NodeAccess) -> None:
    fake = FakeOperation(fails="cut short")
    plan = make_plan(make_step("stop_unit", "a.service"))
    with pytest.raises(RemedyError):
        apply_plan(plan, node, operations=lambda _kind: fake)
    fake.fails, fake.values["a.service"] = None, "theirs"
    with pytest.raises(RemedyError, match="somebody changed it since"):
        apply_plan(plan, node, operations=lambda _kind: fake)
    undone = undo_plan(plan, node, operations=lambda _kind: fake)
    assert undone.left_alone == ("a.service is theirs",)
    assert fake.values["a.service"] == "theirs"


def test_undo_goes_backwards_and_once(node: NodeAccess) -> None:
    fake = FakeOperation()
    apply_plan(PLAN, node, operations=lambda _kind: fake)
    fake.calls.clear()
    undone = undo_plan(PLAN, node, operations=lambda _kind: fake)
    assert fake.calls == ["undo b.service", "undo a.service"]
    assert undone.restored == ("b.service", "a.service")
    assert undo_plan(PLAN, node, operations=lambda _kind: fake).restored == ()
    apply_plan(PLAN, node, operations=lambda _kind: fake)  # and may be applied anew
    assert fake.values == {"a.service": "new", "b.service": "new"}


def test_undo_goes_past_what_cannot_come_back(node: NodeAccess) -> None:
    fake = FakeOperation()
    plan = make_plan(
        make_step("stop_unit", "a.service"),
        make_step("drop_caches", None, target="node", undo="never", changes=("the page cache",)),
    )
    apply_plan(plan, node, operations=lambda _kind: fake)
    undone = undo_plan(plan, node, operations=lambda _kind: fake)
    assert undone.kept == ("the page cache",)
    assert undone.restored == ("a.service",)


# -- attempts --------------------------------------------------------------------------


def test_what_is_turned_back_is_tried_twice_and_then_named(node: NodeAccess) -> None:
    fake = FakeOperation()
    plan = make_plan(make_step("stop_unit", "a.service"))
    asked: list[int] = []

    def culprit(_step: object, since_ns: int) -> str:
        asked.append(since_ns)
        return "puppet"

    apply_plan(plan, node, operations=lambda _kind: fake)
    fake.values["a.service"] = "old"
    apply_plan(plan, node, operations=lambda _kind: fake, culprit=culprit)
    assert fake.values["a.service"] == "new"
    assert asked == []
    fake.values["a.service"] = "old"
    with pytest.raises(RemedyError, match="after each of 2 tries; by: puppet"):
        apply_plan(plan, node, operations=lambda _kind: fake, culprit=culprit)
    assert fake.values["a.service"] == "old"
    assert len(asked) == 1
    assert _attempts(node, plan) == [(1, 1, True), (1, 2, True)]


def test_one_run_notices_that_an_earlier_step_is_turned_back(node: NodeAccess) -> None:
    """A later step, or somebody during it, starts again what was stopped."""
    fake = FakeOperation()

    def turn_back(name: str) -> None:
        if name == "b.service":
            fake.values["a.service"] = "old"

    fake.on_apply = turn_back
    apply_plan(PLAN, node, operations=lambda _kind: fake)
    assert fake.values == {"a.service": "new", "b.service": "new"}
    assert _attempts(node) == [(1, 1, True), (2, 1, True), (1, 2, True)]


def test_undo_after_two_attempts_ends_where_it_began(node: NodeAccess) -> None:
    fake = FakeOperation()
    plan = make_plan(make_step("stop_unit", "a.service"))
    apply_plan(plan, node, operations=lambda _kind: fake)
    fake.values["a.service"] = "old"
    apply_plan(plan, node, operations=lambda _kind: fake)
    undo_plan(plan, node, operations=lambda _kind: fake)
    assert fake.values["a.service"] == "old"


# -- refusals --------------------------------------------------------------------------


def test_a_plan_that_no_longer_fits_takes_no_step(node: NodeAccess) -> None:
    fake = FakeOperation()
    with pytest.raises(StalePlan, match=r"a\.service: on → off"):
        apply_plan(
            PLAN,
            node,
            operations=lambda _kind: fake,
            changed=lambda _plan, _node: ("a.service: on → off",),
        )
    assert fake.calls == []
    assert _attempts(node) == []


def test_an_expired_plan_takes_no_step(node: NodeAccess) -> None:
    fake = FakeOperation()
    with pytest.raises(StalePlan, match="expired"):
        apply_plan(PLAN, node, operations=lambda _kind: fake, now_ns=lambda: PLAN.expires_ns + 1)
    assert fake.calls == []


def test_a_resumed_plan_does_not_rest_on_what_its_own_steps_changed(node: NodeAccess) -> None:
    facts = (
        Fact("unit_state", "a.service", "on"),
        Fact("unit_state", "b.service", "on"),
        Fact("cgroup", "/system.slice/a.service", "there"),
        Fact("boot", "node", "x"),
    )
    plan = make_plan(*PLAN.steps, facts=facts)
    good, bad = FakeOperation(), FakeOperation(fails="no")
    kinds: dict[Any, FakeOperation] = {"stop_unit": good, "mask_unit": bad}
    with pytest.raises(RemedyError):
        apply_plan(plan, node, operations=kinds.__getitem__)
    asked: list[str] = []

    def changed(now: Plan, _node: NodeAccess) -> tuple[str, ...]:
        asked.extend(each.subject for each in now.rests_on)
        return ()

    bad.fails = None
    apply_plan(plan, node, operations=kinds.__getitem__, changed=changed)
    assert asked == ["node"]


def test_facts_of_the_node_are_never_a_step_s_own() -> None:
    step = make_step("stop_container", "node", {"irq": "7"}, target="container")
    attempt = StepAttempt(
        1, 1, step, {"changes": [{"path": "/etc/systemd/system/alias.service"}]}, 1
    )
    assert not is_own(Fact("boot", "node", "x"), attempt)
    assert is_own(Fact("container_id", "docker node", "x"), attempt)
    assert not is_own(Fact("container_id", "docker nodes", "x"), attempt)
    assert is_own(Fact("irq_affinity", "7", "x"), attempt)
    assert is_own(Fact("file", "/etc/systemd/system/alias.service", "x"), attempt)
    assert not is_own(Fact("file", "/etc/systemd/system/other.service", "x"), attempt)


def test_the_guard_is_asked_at_the_moment_of_each_step(node: NodeAccess) -> None:
    fake = FakeOperation()

    def guard(step: Any, _node: object, known: frozenset[str]) -> Refused | None:
        needed = step.target.name == "b.service" and "b.service" not in known
        return Refused(step.target, "sshd needs it", "b.service") if needed else None

    with pytest.raises(GuardRefused, match="sshd needs it") as refused:
        apply_plan(PLAN, node, operations=lambda _kind: fake, guard=guard)
    assert refused.value.hint == "`--i-know b.service` overrules this"
    assert fake.values == {"a.service": "new"}
    known = Consents(i_know=frozenset({"b.service"}))
    apply_plan(PLAN, node, operations=lambda _kind: fake, guard=guard, consents=known)
    assert fake.values["b.service"] == "new"


def test_files_are_deleted_only_with_their_owner_s_consent(node: NodeAccess) -> None:
    fake = FakeOperation()
    plan = make_plan(make_step("delete_files", "/dev/shm", consent="/dev/shm", undo="never"))
    with pytest.raises(RemedyError, match="belongs to /dev/shm"):
        apply_plan(plan, node, operations=lambda _kind: fake)
    consents = Consents(owners=frozenset({"/dev/shm"}))
    apply_plan(plan, node, operations=lambda _kind: fake, consents=consents)
    assert "apply" in fake.calls


def test_a_refused_check_leaves_no_intent(node: NodeAccess) -> None:
    fake = FakeOperation(refuses="it is masked already")
    with pytest.raises(RemedyError, match="masked already"):
        apply_plan(PLAN, node, operations=lambda _kind: fake)
    assert _attempts(node) == []


def test_a_dry_run_lists_everything_that_would_stop_it(node: NodeAccess) -> None:
    fake = FakeOperation(refuses="no such unit")
    found = find_obstacles(
        PLAN, node, lambda _step, _node, _known: None, Consents(), lambda _kind: fake
    )
    assert found == ("stop_unit a.service: no such unit", "mask_unit b.service: no such unit")
    assert fake.calls == ["check", "check"]


def test_a_dry_run_of_an_expired_plan_says_that_it_expired(node: NodeAccess) -> None:
    old = replace(make_plan(), expires_ns=2)
    (found,) = find_obstacles(old, node, lambda _step, _node, _known: None, Consents())
    assert found == "it expired at 1970-01-01T00:00:00.000Z"


# -- two at once, and interrupts ---------------------------------------------------------


def test_two_runs_at_once_one_is_refused_by_name(node: NodeAccess) -> None:
    folder = make_fixes_folder(node.unit_root)
    assert find_working_pid(folder) is None
    with locked_node(folder):
        assert find_working_pid(folder) == os.getpid()
        with pytest.raises(RemedyBusy, match=f"pid {os.getpid()}"):
            apply_plan(PLAN, node, operations=lambda _kind: FakeOperation())
    assert find_working_pid(folder) is None
    fake = FakeOperation()
    apply_plan(PLAN, node, operations=lambda _kind: fake)
    assert fake.values == {"a.service": "new", "b.service": "new"}


def test_ctrl_c_waits_for_the_end_of_the_step(node: NodeAccess) -> None:
    fake = FakeOperation()
    fake.on_apply = lambda name: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        apply_plan(PLAN, node, operations=lambda _kind: fake)
    assert _attempts(node) == [(1, 1, True)]
    fake.on_apply = lambda _name: None
    apply_plan(PLAN, node, operations=lambda _kind: fake)
    assert _attempts(node) == [(1, 1, True), (2, 1, True)]


@pytest.mark.parametrize("resumes", [True, False])
@pytest.mark.parametrize("at", range(8))
def test_a_run_that_ends_at_any_write_is_resumed_or_undone(
    node: NodeAccess, at: int, resumes: bool
) -> None:
    """What the journal holds is all that a new process knows."""

    class Killed(BaseException):
        pass

    fake = FakeOperation()
    plan = make_plan(*PLAN.steps, made_ns=10 + resumes)
    passed = 0

    def fail(_moment: str, _kind: str) -> None:
        nonlocal passed
        passed += 1
        if passed == at + 1:
            raise Killed

    with pytest.raises(Killed):
        apply_plan(plan, node, around=fail, operations=lambda _kind: fake)
    if resumes:
        apply_plan(plan, node, operations=lambda _kind: fake)
        assert fake.values == {"a.service": "new", "b.service": "new"}
    undo_plan(plan, node, operations=lambda _kind: fake)
    assert set(fake.values.values()) <= {"old"}


def test_journals_are_private(node: NodeAccess) -> None:
    fake = FakeOperation()
    apply_plan(PLAN, node, operations=lambda _kind: fake)
    folder = make_fixes_folder(node.unit_root)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / f"{PLAN.id}.journal").stat().st_mode & 0o777 == 0o600
    with pytest.raises(RemedyError, match="not the id of a plan"):
        PlanJournal.open(folder, "../../etc/passwd")
