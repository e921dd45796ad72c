"""Baselines and what came after, from recordings held in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.records.action import Target
from nodescope.records.node_tables import (
    CgroupChurnRow,
    ContainerRow,
    KernelLogRow,
    MemoryCgroupsRow,
    UnitRow,
)
from nodescope.records.recorder_tables import EventRow
from nodescope.records.table import Row
from nodescope.remedy.plan import Baseline, Plan, PlanStep
from nodescope.remedy.proof.applied import Applied
from nodescope.remedy.proof.assess import Verdicts, assess
from nodescope.remedy.proof.baselines import (
    make_count_baseline,
    read_target_baselines,
)
from nodescope.remedy.proof.recorded_aftermath import judge_container, judge_unit, read_afterwards

START = 1_700_000_000 * SECOND_NS
UNIT = "leaky.service"
HOUR = 3600


def at(second: float) -> int:
    return START + int(second * SECOND_NS)


def event(kind: str, subject: str, second: float, **details: Any) -> EventRow:
    return EventRow(
        time_ns=at(second), kind=kind, subject=subject, message="m", details=json.dumps(details)
    )


def unit(second: float, active: str = "activating", sub: str = "auto-restart") -> UnitRow:
    return UnitRow(
        time_ns=at(second), unit=UNIT, load="loaded", active=active, sub=sub,
        cgroup=f"/system.slice/{UNIT}",
    )  # fmt: skip


def looping(until_s: int, every_s: int = 20) -> list[Row]:
    rows: list[Row] = [unit(0)]
    for second in range(600, until_s, every_s):
        rows.append(event("unit_restart", UNIT, second))
        rows.append(event("unit_started", UNIT, second + 0.1))
    return rows


def zombies(until_s: int, per_s: float, then_s: int = 0) -> list[Row]:
    return [
        MemoryCgroupsRow(
            time_ns=at(second), version="v2", tracked=1000, visible=100,
            dying=round(500 + per_s * min(second, until_s)), walk_ns=2_000_000, walk_file="x",
        )
        for second in range(0, until_s + then_s, 10)
    ]  # fmt: skip


def by_measure(found: Iterable[Baseline]) -> dict[str, Baseline]:
    return {each.measure: each for each in found}


def read(rows: list[Row], *targets: Target, until_s: int = HOUR) -> dict[str, Baseline]:
    return by_measure(read_target_baselines(recording_of(rows), targets, at(until_s)))


def test_a_loop_is_measured_from_its_first_round() -> None:
    end = [unit(HOUR)]
    found = read([*looping(HOUR), *zombies(HOUR, 0.05), *end], Target("unit", UNIT))
    loop = found["unit_restarts"]
    assert loop.count == 149
    assert loop.exposure_s == pytest.approx(3000, abs=1)
    assert loop.longest_gap_s == pytest.approx(20)
    assert loop.overdispersion is not None
    assert loop.overdispersion < 0.1
    assert loop.backoff_s == pytest.approx(40)
    level = found["zombies"]
    assert level.slope_per_s == pytest.approx(0.05, rel=0.05)
    assert found["walk_s"].count == 0.002


def test_a_loop_that_rested_already_has_a_long_gap() -> None:
    found = read([*looping(1200), unit(HOUR)], Target("unit", UNIT))
    assert found["unit_restarts"].longest_gap_s == pytest.approx(2420, abs=1)


def test_gaps_that_double_will_double_again() -> None:
    times = [0.0, 10, 30, 70, 150]
    known = make_count_baseline("unit_restarts", "it", times, 155, 4, 155, 0)
    assert known.longest_gap_s == 160


def test_containers_and_their_cgroups() -> None:
    rows: list[Row] = [
        ContainerRow(
            time_ns=at(0), runtime="docker", id="a", name="agent", state="restarting",
            cgroup_parent="/docker",
        )
    ]  # fmt: skip
    for second in range(600, HOUR, 30):
        rows.append(event("container_started", "agent", second))
        rows.append(
            CgroupChurnRow(
                time_ns=at(second + 1),
                parent="/docker",
                pattern="*",
                made=1,
                removed=1,
                released=0,
                attached=1,
            )
        )
    found = read(rows, Target("container", "agent", runtime="docker"))
    assert found["container_restarts"].count == 99
    assert found["container_restarts"].backoff_s == 30  # docker waits a minute at most
    assert found["cgroups_made"].subject == "/docker"


def test_a_child_that_goes_on_failing_is_not_silence() -> None:
    told = {"child": "agent", "failed_ends": 40, "watched_s": 800.0}
    goes_on = [event("unit_child_failing", UNIT, second, **told) for second in range(900, 4100, 60)]
    rows: list[Row] = [unit(0, "active", "running"), *goes_on, unit(4200, "active", "running")]
    recording = recording_of(rows)
    before = read_target_baselines(recording, [Target("unit", UNIT)], at(HOUR))
    assert by_measure(before)["child_failures"].count == 40
    plan = Plan("n", "", at(HOUR), at(HOUR), (), ())  # the unit runs on: its limit was raised
    after = read_afterwards(recording, plan, before, Applied(at(HOUR), at(HOUR)), at(4200))
    assert assess(plan, before, after).mechanism.verdict == "refuted"


def test_kills_and_resets_and_jobs() -> None:
    memcg = f"/system.slice/{UNIT}"
    rows: list[Row] = [
        *(event("oom_kill", "leaky", second, memcg=memcg) for second in range(100, HOUR, 60)),
        *(event("oom_kill", "other", second, memcg="/other") for second in range(100, HOUR, 60)),
        *(event("nic_reset", "eth0", second) for second in (1000, 1005, 1010, 3000)),
        event("job_failed", "job", 1001),
        KernelLogRow(time_ns=at(0), sequence=1, level=6, facility=0, user=False, text="x"),
        unit(10), unit(HOUR),
    ]  # fmt: skip
    found = read(rows, Target("unit", UNIT))
    assert found["oom_kills"].count == 58
    assert found["resets"].count == 2  # incidents, not lines
    assert found["job_failures"].role == "outcome"


def test_nothing_recorded_is_no_baseline() -> None:
    assert read([event("mark", "x", 0), event("mark", "x", HOUR)], Target("unit", UNIT)) == {}


# -- after -------------------------------------------------------------------------------


def validate(recording: Recording, boot: str = "") -> Verdicts:
    step = PlanStep("stop_unit", Target("unit", UNIT), "", {}, (), (), "")
    plan = Plan("n", boot, at(HOUR), at(HOUR), (), (step,))
    before = read_target_baselines(recording, [step.target], at(HOUR))
    after = read_afterwards(
        recording, plan, before, Applied(at(HOUR), at(HOUR)), recording.extent.to_ns
    )
    return assess(plan, before, after)


def test_a_recording_of_a_stopped_unit_proves_it() -> None:
    rows = [*looping(HOUR), *zombies(HOUR, 0.05, 600)]
    stopped = recording_of(
        [*rows, unit(HOUR, "inactive", "dead"), unit(HOUR + 600, "inactive", "dead")]
    )
    verdicts = validate(stopped)
    assert verdicts.mechanism.verdict == "proven", verdicts
    goes_on = recording_of([*looping(HOUR + 600), *zombies(HOUR + 600, 0.05), unit(HOUR + 600)])
    assert validate(goes_on).mechanism.verdict == "refuted"


def test_a_recording_that_ends_too_soon_is_unknown() -> None:
    rows = [*looping(HOUR), unit(HOUR, "inactive", "dead"), unit(HOUR + 5, "inactive", "dead")]
    assert validate(recording_of(rows)).mechanism.verdict == "unknown"


def test_states_that_rest_and_states_that_wait() -> None:
    assert judge_unit("u", "loaded", "inactive", "dead").at_rest is True
    assert judge_unit("u", "masked", "inactive", "dead").at_rest is True
    assert judge_unit("u", "loaded", "failed", "failed").at_rest is True
    assert judge_unit("u", "loaded", "activating", "auto-restart").at_rest is False
    assert judge_unit("u", "not-found", "inactive", "dead").at_rest is None
    assert judge_container("c", ["exited"]).at_rest is True
    assert judge_container("c", []).at_rest is True
    assert judge_container("c", ["exited", "restarting"]).at_rest is False
