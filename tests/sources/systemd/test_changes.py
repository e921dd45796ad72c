"""Signals as a real systemd 252 sends them when a unit crashes and is restarted."""

from __future__ import annotations

from typing import Any

from nodescope.sources.systemd.changes import WatchedUnits
from nodescope.sources.systemd.manager import Changed, JobRemoved, Removed
from nodescope.sources.systemd.unit import Unit

_UNIT = "x.service"


def _service(**properties: Any) -> Changed:
    return Changed(_UNIT, properties)


def _unit(active: str, sub: str, run: bytes, *, tried: int, **more: Any) -> Changed:
    return Changed(
        _UNIT,
        {
            "ActiveState": active,
            "SubState": sub,
            "InvocationID": run * 16,
            "ConditionTimestampMonotonic": tried,
            **more,
        },
    )


def _ended(restarts: int) -> Changed:
    return _service(
        MainPID=0,
        Result="exit-code",
        NRestarts=restarts,
        ExecMainStartTimestampMonotonic=100,
        ExecMainExitTimestampMonotonic=400,
        ExecMainCode=1,
        ExecMainStatus=3,
    )


def _running(restarts: int) -> Changed:
    return _service(
        MainPID=301,
        Result="success",
        NRestarts=restarts,
        ExecMainStartTimestampMonotonic=2500,
        ExecMainExitTimestampMonotonic=0,
        ExecMainCode=0,
        ExecMainStatus=0,
    )


def _watched() -> WatchedUnits:
    watched = WatchedUnits()
    watched.learn(
        [
            Unit(
                _UNIT,
                active="active",
                invocation="61" * 16,
                restarts=80,
                main_started_us=100,
                tried_us=90,
                result="success",
            )
        ]
    )
    return watched


_CRASH = [
    _ended(80),
    _unit("failed", "failed", b"a", tried=90, StateChangeTimestampMonotonic=410),
    _ended(80),
    _unit("activating", "auto-restart", b"a", tried=90, StateChangeTimestampMonotonic=420),
]
_RESTART = [
    _ended(81),
    _unit("activating", "auto-restart", b"a", tried=90, Job=(7, "/job/7")),
    _running(81),
    _unit("inactive", "dead", b"b", tried=2400, Job=(7, "/job/7")),
    _unit("active", "running", b"b", tried=2400, Job=(0, "/")),
]


def test_a_crash_and_a_restart_are_told_with_their_times() -> None:
    told = _watched().follow([*_CRASH, *_RESTART], now_us=9999)
    assert [(each.kind, each.time_us, each.exact) for each in told] == [
        ("exit", 400, True),
        ("failed", 410, True),
        ("started", 2500, True),
        ("restart", 2400, True),
    ]
    restart = told[-1]
    assert restart.details.invocation == "61" * 16
    assert restart.details.restarts == 81
    assert (restart.details.exit_kind, restart.details.exit_status) == ("exited", 3)


def test_a_restart_has_no_time_of_its_own_until_the_new_run_is_tried() -> None:
    watched = _watched()
    watched.follow(_CRASH, now_us=500)
    told = watched.follow(_RESTART[:2], now_us=2300)
    assert [(each.kind, each.exact) for each in told] == [("restart", False)]
    told = watched.follow(_RESTART[2:], now_us=2600)
    assert ("restart", 2400, True) in [(each.kind, each.time_us, each.exact) for each in told]


def test_changes_said_as_one_still_name_the_run_that_ended() -> None:
    told = _watched().follow([_running(81), _RESTART[-1]], now_us=9999)
    assert {each.kind: each.details.invocation for each in told} == {
        "started": "62" * 16,
        "restart": "61" * 16,
    }


def test_a_unit_that_was_never_read_is_asked_for() -> None:
    watched = WatchedUnits()
    assert watched.follow(_CRASH, now_us=1) == []
    assert watched.unknown == {_UNIT}


def test_a_manual_start_is_no_restart() -> None:
    """NRestarts goes back to 0 then."""
    told = _watched().follow([_running(0), _RESTART[-1]], now_us=9999)
    assert [each.kind for each in told] == ["started"]


def test_jobs_that_fail_are_told() -> None:
    told = _watched().follow(
        [JobRemoved("y.service", 7, "dependency"), JobRemoved("z.service", 8, "done")], now_us=5
    )
    assert [(each.kind, each.unit, each.details.result) for each in told] == [
        ("start_failed", "y.service", "dependency")
    ]


def test_a_unit_that_systemd_forgot_is_forgotten() -> None:
    watched = _watched()
    watched.follow([Removed(_UNIT)], now_us=5)
    assert watched.units == {}
