from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from nodescope.judgement.unit_insides import cgroups_to_watch, is_settled
from nodescope.judgement.unit_use import find_stopped_with
from nodescope.judgement.units import audit_units
from nodescope.judgement.verdict import Audit, AuditFinding, sort_findings
from nodescope.pictures.audit import findings_document, render_audit, render_findings
from nodescope.sources.processes.exits import TaskExit
from nodescope.sources.systemd import happenings
from nodescope.sources.systemd.journal import JournalMessage
from nodescope.sources.systemd.survey import Survey
from nodescope.sources.systemd.unit import Check, Unit
from nodescope.sources.systemd.unit_processes import Insides, Process, UnitInside

_S = 1_000_000
_NOW = 5000 * _S
_RUNNING = Unit(
    "x.service",
    load="loaded",
    active="active",
    sub="running",
    type="simple",
    file_state="enabled",
    wanted_by=("multi-user.target",),
    dependants=("multi-user.target", "shutdown.target"),
    cgroup="/system.slice/x.service",
    why_not_started="started",
)
_MAIN = Process(10, 1, "supervisor", 100 * _S, "/usr/bin/supervisor")


def _survey(*units: Unit, told: list[happenings.UnitHappening] | None = None) -> Survey:
    survey = Survey({unit.name: unit for unit in units}, now_us=_NOW, live=True)
    survey.lives.take(told or [])
    return survey


def _insides(
    *exits: TaskExit,
    listening: tuple[str, ...] = (),
    holds: tuple[str, ...] | None = (),
    cpu_us: int = 0,
    sees: bool = True,
) -> Insides:
    running = frozenset([10])
    inside = UnitInside("x.service", {10: _MAIN}, running, list(exits), listening, holds, cpu_us)
    return Insides({"x.service": inside}, 20 * _S, _NOW, sees, "" if sees else "not permitted")


def _verdicts(survey: Survey, insides: Insides | None = None) -> list[AuditFinding]:
    return audit_units(survey, insides or _insides())


def _crashes(
    count: int, *, restarts: bool = True, status: int = 1
) -> list[happenings.UnitHappening]:
    told = []
    for number in range(count):
        at, run = _NOW - (count - number) * 10 * _S, f"run{number}"
        told.append(happenings.started("x.service", at, run))
        told.append(happenings.exited("x.service", at + _S, run, "exited", status))
        if status:
            told.append(happenings.failed("x.service", at + _S, run, "exit-code"))
        if restarts:
            told.append(happenings.restarted("x.service", at + 2 * _S, run, number + 1))
    return told


def _exit(comm: str, status: int = 256) -> TaskExit:
    return TaskExit(99, 10, comm, status, _S)


def test_a_healthy_unit_is_not_named() -> None:
    assert _verdicts(_survey(_RUNNING)) == []


def test_a_unit_that_restarts_again_and_again_loops() -> None:
    unit = replace(_RUNNING, active="activating", sub="auto-restart", restarts=6)
    (finding,) = _verdicts(_survey(unit, told=_crashes(6)))
    assert finding.verdict == "looping"
    assert finding.reason == "restarted 6 times, every 10 s; its last run ended with exit code 1"
    assert finding.evidence["failures"] == 6


def test_a_loop_is_seen_without_a_journal_and_while_it_happens_to_run() -> None:
    waits = replace(_RUNNING, active="activating", sub="auto-restart", restarts=3)
    runs = replace(_RUNNING, restarts=9, active_since_us=_NOW - 2 * _S)
    for unit in (waits, runs):
        assert [each.verdict for each in _verdicts(_survey(unit))] == ["looping"]
    long = replace(_RUNNING, restarts=9, active_since_us=_NOW - 3600 * _S)
    assert _verdicts(_survey(long)) == []


def test_a_unit_that_somebody_started_again_after_a_loop_is_left_alone() -> None:
    """A manual start sets NRestarts to 0."""
    assert _verdicts(_survey(replace(_RUNNING, restarts=0), told=_crashes(6))) == []


def test_a_failed_unit_fails_and_one_that_was_tried_often_never_succeeded() -> None:
    failed = replace(_RUNNING, active="failed", sub="failed", exit_kind="exited", exit_status=1)
    (finding,) = _verdicts(_survey(failed, told=_crashes(1, restarts=False)))
    assert (finding.verdict, finding.reason) == ("failing", "failed: ended with exit code 1")
    (finding,) = _verdicts(_survey(failed, told=_crashes(5, restarts=False)))
    assert finding.verdict == "never_succeeded"
    well = [*_crashes(5, restarts=False), *_crashes(1, restarts=False, status=0)]
    well[-1] = happenings.exited("x.service", _NOW, "good", "exited", 0)
    (finding,) = _verdicts(_survey(failed, told=well))
    assert finding.verdict == "failing"


def test_the_journal_alone_tells_of_failures() -> None:
    told = _crashes(1, restarts=False)
    survey = _survey(Unit("x.service", file_state="enabled"), told=told)
    survey.live = False
    assert [each.verdict for each in audit_units(survey, Insides())] == ["failing"]


@pytest.mark.parametrize(
    ("exits", "found"),
    [
        ([_exit("agent")] * 3, True),
        ([_exit("agent", 11)] * 3, True),  # killed by SIGSEGV
        ([_exit("agent")] * 2, False),
        ([TaskExit(99, 10, "agent", 256, 8 * _S)] * 2, True),  # it lived: no passing helper
        ([TaskExit(99, 10, "agent", 256, 8 * _S)], False),
        ([_exit("agent", 0)] * 30, False),  # a poller whose helpers end well
        ([_exit("agent", 15)] * 30, False),  # told to end
        ([_exit("grep")] * 30, False),  # an answer, not an error
    ],
)
def test_children_that_fail_again_and_again_are_a_loop(exits: list[TaskExit], found: bool) -> None:
    findings = _verdicts(_survey(_RUNNING), _insides(*exits))
    assert [each.verdict for each in findings] == (["hidden_loop"] if found else [])


def test_without_exit_codes_new_processes_of_one_command_are_a_loop() -> None:
    insides = _insides(sees=False)
    inside = insides.of["x.service"]
    for number in range(3):
        pid = 20 + number
        inside.processes[pid] = Process(pid, 10, "agent", _NOW - (3 - number) * _S, "agent --now")
    (finding,) = _verdicts(_survey(_RUNNING), insides)
    assert finding.verdict == "hidden_loop"
    assert finding.evidence["new_processes"] == 3
    inside.running = frozenset([10, 20, 21, 22])  # side by side: workers
    assert _verdicts(_survey(_RUNNING), insides) == []
    insides.sees_exits = True
    inside.running = frozenset([10])
    assert _verdicts(_survey(_RUNNING), insides) == []  # and none of them failed


def _line(text: str, ago_us: int = 60 * _S) -> JournalMessage:
    return JournalMessage(_NOW - ago_us, 0, "", {"MESSAGE": text})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Agent exited with code 1", True),
        ("ECS Agent failed to start, retrying in 21s", True),
        ("worker 12 died unexpectedly, status=137", True),
        ("Agent exited with code 0", False),
        ("all is well", False),
    ],
)
def test_what_a_unit_logs_of_its_children_counts(text: str, found: bool) -> None:
    survey = _survey(_RUNNING)
    survey.lines["x.service"] = [_line(text)] * 3
    verdicts = [each.verdict for each in _verdicts(survey)]
    assert verdicts == (["hidden_loop"] if found else [])
    survey.lines["x.service"] = [_line(text, 7200 * _S)] * 3
    assert _verdicts(survey) == []


def test_runtimes_of_containers_are_not_blamed_for_what_they_run() -> None:
    docker = replace(_RUNNING, name="docker.service")
    survey = _survey(docker)
    survey.lines["docker.service"] = [_line("container exited with code 1")] * 9
    assert _verdicts(survey) == []
    assert cgroups_to_watch(survey) == {}


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("condition:ConditionPathExists=/x", "its condition ConditionPathExists=/x is not met"),
        ("assert:AssertPathExists=/x", "its assertion AssertPathExists=/x is not met"),
        ("dependency:y.service", "it requires y.service, which does not run"),
        ("cycle_deleted", "ordered after itself"),
    ],
)
def test_what_holds_a_unit_back_is_said(why: str, said: str) -> None:
    held = replace(_RUNNING, active="inactive", why_not_started=why)
    other = Unit("y.service", load="loaded", active="failed")
    findings = {each.name: each for each in _verdicts(_survey(held, other))}
    assert findings["x.service"].verdict == "held_back"
    assert said in findings["x.service"].reason


def test_who_is_not_enabled_is_not_held_back() -> None:
    why = "condition:ConditionPathExists=/x"
    for change in (
        {"file_state": "static"},
        {"file_state": "disabled"},
        {"vendor": "vendor", "type": "oneshot"},
    ):
        changes: dict[str, Any] = {"active": "inactive", "why_not_started": why, **change}
        assert _verdicts(_survey(replace(_RUNNING, **changes))) == []


def test_waiting_is_told_when_it_lasts() -> None:
    held = replace(_RUNNING, active="inactive", why_not_started="waiting_for:y.service")
    for since, found in ((_NOW - _S, 0), (_NOW - 60 * _S, 1)):
        slow = Unit("y.service", active="activating", state_since_us=since)
        assert len(_verdicts(_survey(held, slow))) == found


_PRESET = replace(_RUNNING, preset_rule="enable x.service (/usr/lib/x.preset:1)")


def test_a_unit_that_only_a_preset_wants_is_unused() -> None:
    (finding,) = _verdicts(_survey(_PRESET))
    assert finding.verdict == "unused"
    assert "/usr/lib/x.preset:1" in finding.reason


@pytest.mark.parametrize(
    "change",
    [
        {"preset_rule": None},
        {"dependants": ("multi-user.target", "y.service")},
        {"dependants": ("multi-user.target", "time-sync.target")},
        {"bus_name": "org.example"},
        {"type": "oneshot"},
        {"active": "inactive"},
    ],
)
def test_a_unit_that_somebody_needs_is_used(change: dict[str, Any]) -> None:
    assert _verdicts(_survey(replace(_PRESET, **change))) == []


_VENDOR = replace(_RUNNING, vendor="vendor", preset="enabled")


@pytest.mark.parametrize("unit", [_PRESET, _VENDOR, replace(_VENDOR, image_wants=True)])
def test_a_unit_that_does_something_or_cannot_be_looked_into_is_not_called_unused(
    unit: Unit,
) -> None:
    assert [each.verdict for each in _verdicts(_survey(unit))] == ["unused"]
    assert _verdicts(_survey(unit), _insides(listening=("tcp:80",))) == []
    assert _verdicts(_survey(unit), _insides(holds=("/run/crond.pid",))) == []
    assert _verdicts(_survey(unit), _insides(holds=None)) == []
    assert _verdicts(_survey(unit), Insides()) == []


def test_a_unit_that_nobody_names_is_unused_only_if_it_never_worked() -> None:
    worked = _insides(cpu_us=2 * _S)
    (finding,) = _verdicts(_survey(_VENDOR))
    assert "the presets' default" in finding.reason
    assert _verdicts(_survey(_VENDOR), worked) == []
    assert [each.verdict for each in _verdicts(_survey(_PRESET), worked)] == ["unused"]


@pytest.mark.parametrize(
    "change",
    [
        {"vendor": "administrator"},
        {"preset": "disabled"},
        {"configured": True},
        {"terminal": True},
        {"bus_name": "org.example"},
        {"type": "dbus"},
        {"wanted_by": ("multi-user.target", "y.service")},
        {"dependants": ("multi-user.target", "x.socket")},
    ],
)
def test_a_unit_that_somebody_may_have_asked_for_is_used(change: dict[str, Any]) -> None:
    assert _verdicts(_survey(replace(_VENDOR, **change))) == []


def test_of_a_unit_that_goes_wrong_it_is_said_that_nobody_asked_for_it() -> None:
    loops: dict[str, Any] = {"active": "activating", "sub": "auto-restart", "restarts": 6}
    for unit, said in (
        (_VENDOR, "; nothing but the presets' default asks for it"),
        (_PRESET, "; nothing but the preset `enable x.service (/usr/lib/x.preset:1)` asks for it"),
        (_RUNNING, ""),
        (replace(_VENDOR, dependants=("y.service",)), ""),
    ):
        (finding,) = _verdicts(_survey(replace(unit, **loops), told=_crashes(6)))
        assert finding.verdict == "looping"
        assert finding.reason.endswith(f"ended with exit code 1{said}")
        assert ("asked_by" in finding.evidence) == bool(said)
    (hidden,) = _verdicts(_survey(_VENDOR), _insides(*[_exit("agent")] * 3))
    assert (hidden.verdict, hidden.evidence["asked_by"]) == ("hidden_loop", "the presets' default")


def test_giving_up_is_said_only_where_systemd_did() -> None:
    failed = replace(_RUNNING, active="failed", exit_kind="exited", exit_status=9)
    told = _crashes(1)
    told.append(happenings.started("x.service", _NOW - 5 * _S, "again"))
    told.append(happenings.exited("x.service", _NOW - 4 * _S, "again", "exited", 9))
    told.append(happenings.failed("x.service", _NOW - 4 * _S, "again", "exit-code"))
    (finding,) = _verdicts(_survey(failed, told=told))
    assert finding.reason == "failed: ended with exit code 9"
    stopped = happenings.UnitHappening("stopped", "x.service", _NOW - 3 * _S, ("stopped",))
    (finding,) = _verdicts(_survey(failed, told=[*told, stopped]))
    assert finding.reason == "failed when it was stopped: ended with exit code 9"
    announced = happenings.restarted("x.service", _NOW - 3 * _S, "again", 2)
    refused = happenings.start_failed("x.service", _NOW - 2 * _S, "7", "failed")
    (finding,) = _verdicts(_survey(failed, told=[*told, announced, refused]))
    assert finding.reason == "failed, and systemd gave up: ended with exit code 9"


def test_a_loop_that_somebody_stopped_is_over() -> None:
    unit = replace(_RUNNING, active="inactive", restarts=6, why_not_started="started")
    assert [each.verdict for each in _verdicts(_survey(unit, told=_crashes(6)))] == ["looping"]
    stopped = happenings.UnitHappening("stopped", "x.service", _NOW - _S, ("stopped",))
    assert _verdicts(_survey(unit, told=[*_crashes(6), stopped])) == []


@pytest.mark.parametrize(
    ("check", "named"),
    [
        (Check("ConditionVirtualization", "no", met=False), False),
        (Check("ConditionPathExists", "/dev/tty0", met=False), False),
        (Check("ConditionPathExists", "/etc/agent.conf", met=False), True),
    ],
)
def test_a_vendors_unit_for_another_machine_is_not_held_back(check: Check, named: bool) -> None:
    unit = replace(
        _VENDOR, active="inactive", conditions=(check,), why_not_started=f"condition:{check}"
    )
    assert [each.verdict for each in _verdicts(_survey(unit))] == ["held_back"] * named
    ours = replace(unit, vendor="administrator")
    assert [each.verdict for each in _verdicts(_survey(ours))] == ["held_back"]


def test_watching_ends_when_nothing_is_young() -> None:
    insides = _insides()
    assert is_settled(insides)
    insides.of["x.service"].processes[20] = Process(20, 10, "agent", _NOW - _S, "agent")
    assert not is_settled(insides)
    insides.of["x.service"].exits += [_exit("agent")] * 3
    assert is_settled(insides)
    insides.watched_us = _S
    assert not is_settled(insides)


def test_findings_are_shown_the_worst_first() -> None:
    unused = AuditFinding("b.service", "unused", "nobody", {"fragment": "/x"})
    looping = AuditFinding("a.service", "looping", "again", {"starts": 4, "failures": 4})
    findings = sort_findings([unused, looping])
    text = render_findings(findings)
    assert text.index("a.service") < text.index("b.service")
    assert "4 starts since boot, 4 failures, 0 successes" in text
    assert [each["verdict"] for each in findings_document(findings)] == ["looping", "unused"]
    assert "nothing" in render_audit(Audit([]))


def test_what_stops_with_a_unit_is_found_through_others() -> None:
    units = {
        "a.target": Unit("a.target", active="active", stops_with=("b.service", "x.service")),
        "b.service": Unit("b.service", active="active", stops_with=("c.service",)),
        "c.service": Unit("c.service", active="failed", stops_with=("d.service",)),
        "d.service": Unit("d.service", active="active", stops_with=("b.service",)),
        "e.service": Unit("e.service", active="active", restarts=9, main_started_us=_NOW - _S),
    }

    def read(names: Iterable[str]) -> dict[str, Unit]:
        return {name: units[name] for name in names if name in units}

    unit = replace(_RUNNING, stops_with=("a.target", "e.service", "gone.service"))
    # A target groups, a failed unit and one that loops are not in use; a circle ends.
    assert find_stopped_with(unit, read, _NOW) == ("b.service", "d.service")
    assert find_stopped_with(_RUNNING, read, _NOW) == ()
