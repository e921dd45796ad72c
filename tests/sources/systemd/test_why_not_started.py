from __future__ import annotations

import pytest

from nodescope.sources.systemd.unit import Check, Unit
from nodescope.sources.systemd.why_not_started import why_not_started

_OTHERS = {
    "multi-user.target": Unit("multi-user.target", active="active"),
    "late.target": Unit("late.target", active="inactive"),
    "failed.service": Unit("failed.service", active="failed"),
    "gone.service": Unit("gone.service", load="not-found", active="inactive"),
    "slow.service": Unit("slow.service", active="activating", job=3),
    "idle.service": Unit("idle.service", load="loaded", active="inactive"),
    "circle.service": Unit("circle.service", active="inactive", after=("x.service",)),
}


def _inactive(**more: object) -> Unit:
    known = {"file_state": "enabled", "wanted_by": ("multi-user.target",), **more}
    return Unit("x.service", load="loaded", active="inactive", **known)  # type: ignore[arg-type]


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
        (
            Unit("x.service", active="failed", restarts=5, restart_policy="always", exit_status=1),
            "start_limit",
        ),
        (
            Unit("x.service", active="failed", exit_code="exited", exit_status=203),
            "exec_failed:203",
        ),
        (
            Unit("x.service", active="failed", exit_code="killed", exit_status=9),
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
