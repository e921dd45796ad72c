from __future__ import annotations

import pytest

from nodescope.sources.systemd.unit import Check, Unit
from nodescope.sources.systemd.why_not_started import find_cycle, why_not_started

_OTHERS = {
    "multi-user.target": Unit("multi-user.target", active="active"),
    "late.target": Unit("late.target", active="inactive"),
    "failed.service": Unit("failed.service", active="failed"),
    "gone.service": Unit("gone.service", load="not-found", active="inactive"),
    "slow.service": Unit("slow.service", active="activating", job=3),
    "idle.service": Unit("idle.service", load="loaded", active="inactive"),
    "circle.service": Unit("circle.service", active="active", after=("x.service",)),
    "left-out.service": Unit("left-out.service", active="inactive", after=("x.service",)),
    "wide.service": Unit("wide.service", active="active", after=("circle.target",)),
    "circle.target": Unit("circle.target", active="active", after=("x.service",)),
}


def _inactive(**more: object) -> Unit:
    known = {"file_state": "enabled", "wanted_by": ("multi-user.target",), **more}
    return Unit("x.service", load="loaded", active="inactive", **known)  # type: ignore[arg-type]


def _failed(**more: object) -> Unit:
    known = {
        "restarts": 5, "restart_policy": "always", "exit_kind": "exited", "exit_status": 1,
        "result": "exit-code", "restart_wait_us": 100_000, "limit_burst": 5,
        "limit_interval_us": 10_000_000, **more,
    }  # fmt: skip
    return Unit("x.service", load="loaded", active="failed", **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("unit", "why"),
    [
        (Unit("x.service", active="active"), "started"),
        (Unit("x.service", active="activating", main_started_us=5), "started"),
        (Unit("x.service", load="masked", active="inactive"), "masked"),
        (_inactive(file_state="disabled"), "disabled"),
        (_inactive(wanted_by=("late.target",)), "not_pulled_in"),
        (_inactive(wanted_by=()), "not_pulled_in"),
        (
            _inactive(conditions=(Check("ConditionPathExists", "/x", met=False),)),
            "condition:ConditionPathExists=/x",
        ),
        (
            _inactive(
                conditions=(
                    Check("ConditionA", "1", trigger=True, met=False),
                    Check("ConditionB", "2", trigger=True, met=True),
                ),
                main_exited_us=7,
            ),
            "started",
        ),
        (
            _inactive(asserts=(Check("AssertPathExists", "/x", negated=True, met=False),)),
            "assert:AssertPathExists=!/x",
        ),
        (  # as it is after `systemctl daemon-reload`
            _inactive(
                conditions=(Check("ConditionA", "1"), Check("ConditionB", "2")),
                condition_met=False,
                tried_us=5,
            ),
            "condition:ConditionA=1 or ConditionB=2",
        ),
        (
            _inactive(
                conditions=(Check("ConditionA", "1"),),
                condition_met=True,
                tried_us=5,
                asserts=(Check("AssertA", "1"),),
                assert_met=False,
                asserted_us=5,
            ),
            "assert:AssertA=1",
        ),
        (  # never tried: systemd's answer is no answer
            _inactive(conditions=(Check("ConditionA", "1"),), condition_met=False, wanted_by=()),
            "not_pulled_in",
        ),
        (_inactive(requires=("failed.service",)), "dependency:failed.service"),
        (_inactive(requires=("gone.service",)), "dependency:gone.service"),
        (_inactive(requires=("idle.service",)), "dependency:idle.service"),
        (_inactive(job=9, after=("slow.service",)), "waiting_for:slow.service"),
        (_inactive(after=("circle.service",)), "cycle_deleted"),
        (_inactive(after=("wide.service",)), "cycle_deleted"),
        (_inactive(after=("circle.service",), main_exited_us=7), "started"),
        (_inactive(after=("left-out.service",)), "not_pulled_in"),  # nobody wants that one
        (_failed(result="start-limit-hit"), "start_limit"),
        # as systemd 252 says it: five restarts, and inactive before it failed
        (_failed(main_exited_us=612_560, inactive_since_us=840_626, state_since_us=840_778),
         "start_limit"),
        (_failed(restart_wait_us=0, main_exited_us=721_822, inactive_since_us=722_953,
                 state_since_us=723_220), "start_limit"),
        # RestartPreventExitStatus=9, after one restart, and after seven
        (_failed(restarts=1, exit_status=9, main_exited_us=856_651, inactive_since_us=856_939,
                 state_since_us=856_939), "exec_failed:9"),
        (_failed(restarts=7, restart_wait_us=500_000, limit_interval_us=1_000_000, exit_status=9,
                 main_exited_us=860_267, inactive_since_us=860_449, state_since_us=860_449),
         "exec_failed:9"),
        # stopped by hand, and it ended badly
        (_failed(restarts=1, exit_status=5, main_exited_us=790_695, inactive_since_us=790_793,
                 state_since_us=790_793), "exec_failed:5"),
        # as later versions fail from waiting; but not where the limit is off or cannot be met
        (_failed(main_exited_us=600_000, inactive_since_us=700_900, state_since_us=700_900),
         "start_limit"),
        (_failed(main_exited_us=600_000, inactive_since_us=700_900, state_since_us=700_900,
                 limit_interval_us=0), "exec_failed:1"),
        (_failed(main_exited_us=600_000, inactive_since_us=700_900, state_since_us=700_900,
                 limit_interval_us=400_000), "exec_failed:1"),
        (
            Unit("x.service", active="failed", exit_kind="exited", exit_status=203),
            "exec_failed:203",
        ),
        (
            Unit("x.service", active="failed", exit_kind="killed", exit_status=9),
            "exec_failed:killed-9",
        ),
        (Unit("x.service", active="failed", result="timeout"), "exec_failed:timeout"),
        (Unit("x.service", file_state="disabled"), "disabled"),
        (Unit("x.service", file_state="enabled", requires=("gone.service",)),
         "dependency:gone.service"),
        (Unit("x.service"), None),
    ],
)  # fmt: skip
def test_one_word_for_each(unit: Unit, why: str | None) -> None:
    assert why_not_started(unit, {**_OTHERS, unit.name: unit}) == why


def test_what_systemd_says_of_a_circle_is_believed() -> None:
    assert why_not_started(_inactive(), _OTHERS, cycle_deleted=True) == "cycle_deleted"
    running = Unit("x.service", active="active")
    assert why_not_started(running, _OTHERS, cycle_deleted=True) == "started"


def test_in_files_a_circle_of_units_that_are_all_wanted_counts() -> None:
    first = Unit("x.service", file_state="enabled", wanted_by=("a.target",), after=("y.service",))
    second = Unit("y.service", file_state="enabled", wanted_by=("a.target",), after=("x.service",))
    units = {"x.service": first, "y.service": second}
    assert why_not_started(first, units) == why_not_started(second, units) == "cycle_deleted"
    assert find_cycle(first, units) == ("x.service", "y.service", "x.service")
    units["y.service"] = Unit("y.service", file_state="disabled", after=("x.service",))
    assert why_not_started(first, units) is None
