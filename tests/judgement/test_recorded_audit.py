"""An audit of a recording gives the verdicts that the live node would have got."""

from __future__ import annotations

import json
from typing import Any

from nodescope.ingest.event_rows import event_rows
from nodescope.ingest.unit_events import unit_event
from nodescope.ingest.unit_rows import unit_row
from nodescope.judgement.recorded_audit import RecordedAudit, audit_recording
from nodescope.judgement.units import audit_units
from nodescope.judgement.verdict import UNIT_STATES, Audit
from nodescope.pictures.audit import render_audit
from nodescope.quantities import SECOND_NS
from nodescope.recording.coverage import NotObserved
from nodescope.recording.memory import recording_of
from nodescope.records.node_tables import ContainerRow, MemoryRow, SourceCostRow, UnitRow
from nodescope.records.recorder_tables import EventRow, HeartbeatRow
from nodescope.records.table import Row
from nodescope.sources.systemd import happenings
from nodescope.sources.systemd.happenings import UnitHappening
from nodescope.sources.systemd.lives import Lives
from nodescope.sources.systemd.survey import Survey
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_processes import Insides

_S = 1_000_000
_NOW_US = 5000 * _S
NOW = _NOW_US * 1000
BEGUN = HeartbeatRow(time_ns=0, wall_ns=0)


def audit(*rows: Row) -> Audit:
    found = audit_recording(recording_of([BEGUN, *rows]), NOW)
    assert isinstance(found, RecordedAudit)
    return found.audit


def verdicts(*rows: Row) -> list[tuple[str, str]]:
    return [(each.name, each.verdict) for each in audit(*rows).findings]


def unit(name: str = "x.service", **more: Any) -> UnitRow:
    values = {"load": "loaded", "active": "active", "sub": "running", "file_state": "enabled"}
    return UnitRow(time_ns=NOW - SECOND_NS, unit=name, **values | more)


def event(kind: str, subject: str, before_s: float = 1, **details: Any) -> EventRow:
    return EventRow(
        time_ns=NOW - int(before_s * SECOND_NS), kind=kind, subject=subject, message="said",
        details=json.dumps(details),
    )  # fmt: skip


def crashes(count: int, every_s: int = 2) -> list[UnitHappening]:
    told = []
    for number in range(count):
        at, run = _NOW_US - (count - number) * every_s * _S, f"run{number}"
        told += [
            happenings.started("x.service", at, run),
            happenings.exited("x.service", at + 1000, run, "exited", 3),
            happenings.failed("x.service", at + 1000, run, "exit-code"),
            happenings.restarted("x.service", at + 2000, run, number + 1),
        ]
    return told


def test_live_and_recorded_a_looping_unit_gets_the_same_finding() -> None:
    lives = Lives()
    new = lives.take(crashes(9))
    state = Unit(
        "x.service", load="loaded", active="activating", sub="auto-restart", restarts=9,
        file_state="enabled", exit_kind="exited", exit_status=3, cgroup="/x", dependants=None,
    )  # fmt: skip
    live = audit_units(Survey({"x.service": state}, lives, now_us=_NOW_US, live=True), Insides())
    events = [unit_event(each) for each in new]
    rows = event_rows(events)
    row = unit_row(state, lives.of["x.service"], NOW - 1)
    assert audit(row, *rows).findings == live
    assert [each.verdict for each in live] == ["looping"]


def test_a_unit_that_failed_and_one_that_was_held_back() -> None:
    rows = (
        unit("bad.service", active="failed", sub="failed", result="exit-code",
             exit_kind="exited", exit_status=3),
        unit("late.service", active="inactive", sub="dead",
             why_not_started="dependency:bad.service"),
    )  # fmt: skip
    assert verdicts(*rows) == [("bad.service", "failing"), ("late.service", "held_back")]


def test_a_loop_inside_a_unit_is_what_the_recorder_reported_lately() -> None:
    details = {"child": "worker", "failed_ends": 5, "watched_s": 10.0, "ends": {"exit code 4": 5}}
    assert verdicts(unit(), event("unit_hidden_loop", "x.service", 60, **details)) == [
        ("x.service", "hidden_loop")
    ]
    assert verdicts(unit(), event("unit_hidden_loop", "x.service", 900, **details)) == []
    other = event("unit_hidden_loop", "x.service", 60, cgroup="/guest/x.service", **details)
    assert verdicts(unit(cgroup="/x.service"), other) == []  # another systemd's
    (said,) = audit(
        unit(), event("unit_logs_ends", "x.service", times=4, last_line="it died", over_s=90.0)
    ).findings
    assert said.reason == "is active, but logged 4 times in 1m 30s: it died"


def test_a_unit_that_somebody_stopped_loops_no_more() -> None:
    lives = Lives()
    events = [unit_event(each) for each in lives.take(crashes(9))]
    rows = [
        EventRow(time_ns=each.time_ns, kind=each.kind, subject=each.subject, message="")
        for each in events
    ]
    assert verdicts(unit(active="activating", sub="auto-restart", restarts=9), *rows) == [
        ("x.service", "looping")
    ]
    assert verdicts(unit(active="inactive", sub="dead", restarts=9), *rows) == []


def test_a_container_that_is_made_anew_again_and_again() -> None:
    rows: list[Row] = []
    for number in range(4):
        common: dict[str, Any] = {"runtime": "docker", "id": f"id{number}", "name": "agent"}
        before_s = 60 - 10 * number
        rows += [
            event("container_started", "agent", before_s, **common),
            event("container_exit", "agent", before_s - 2, **common, exit_status=5, ran_s=2.0),
            ContainerRow(
                time_ns=NOW - before_s * SECOND_NS, state="exited", exit_status=5, **common
            ),
        ]
    assert verdicts(*rows) == [("agent", "looping")]


def test_whether_a_unit_is_used_is_not_judged_but_who_asks_for_it_is_said() -> None:
    preset = {"preset": "enabled", "vendor": "vendor", "wanted_by": "multi-user.target"}
    there = unit("other.service", preset="disabled", file_state="disabled")
    assert verdicts(unit(**preset), there) == []
    failed = unit(active="failed", sub="failed", result="exit-code", **preset)
    (finding,) = audit(failed, there).findings
    assert finding.reason.endswith("; nothing but a preset asks for it")
    assert any("used" in what for what in audit(unit(), there).not_observed)


def test_what_nobody_looked_at_is_not_called_healthy() -> None:
    other = MemoryRow(time_ns=NOW, name="MemTotal", value=1)
    assert isinstance(audit_recording(recording_of([BEGUN, other]), NOW), NotObserved)
    assert "containers" in audit(unit()).not_observed
    assert "what runs inside units" in audit(unit()).not_observed
    asked = SourceCostRow(time_ns=NOW - 1, source="unit_insides")
    assert "what runs inside units" not in audit(unit(), asked).not_observed


def test_units_known_by_their_files_alone_are_not_called_healthy() -> None:
    """Issue 13, point 5: nothing was wrong with units whose states nobody could read."""
    filed = unit(active=None, sub=None)
    blind = audit(filed)
    assert (blind.findings, blind.healthy, blind.unjudged) == ([], None, (UNIT_STATES,))
    assert UNIT_STATES in blind.not_observed
    assert audit(filed, event("unit_started", "x.service")).healthy is True  # the journal tells
    assert audit(unit()).healthy is True


def test_a_state_that_was_not_read_is_left_out() -> None:
    """Issue 13, point 5: `None (None)` stood where the state of a dependency was not known."""
    late = unit(
        "late.service", active="inactive", sub="dead", why_not_started="dependency:x.service"
    )
    (finding,) = audit(late, unit(active=None, sub=None)).findings
    assert finding.evidence["dependency"] is None
    assert "None" not in render_audit(audit(late, unit(active=None, sub=None)), recorded=True)
