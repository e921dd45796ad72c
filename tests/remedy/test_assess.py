from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nodescope.records.action import Target
from nodescope.remedy.plan import Baseline, Plan, PlanStep, Predicted
from nodescope.remedy.proof.aftermath import Aftermath, Afterwards, SourceState
from nodescope.remedy.proof.assess import assess

UNIT = "leaky.service"
LOOP = Baseline(
    "unit_restarts", UNIT, "mechanism", 28, 600, overdispersion=0.05, longest_gap_s=23, backoff_s=37
)
RESTS = SourceState("unit", UNIT, True, "inactive (dead)")
ZOMBIES = Baseline(
    "zombies", "node", "mechanism", 4200, 3600, slope_per_s=0.05, slope_sd_per_s=0.005,
    block_s=300, blocks=12,
)  # fmt: skip
RESETS = Baseline("resets", "node", "outcome", 11, 200 * 3600)


def make_plan(*predicted: Predicted) -> Plan:
    step = PlanStep(
        "stop_unit", Target("unit", UNIT), "it loops", {}, (), (), "start it again", predicted
    )
    return Plan("node", "boot", 0, 0, (), (step,))


def starts(count: float | None, seconds: float) -> Aftermath:
    return Aftermath("unit_restarts", UNIT, count, seconds, seconds)


def since(*measures: Aftermath, **more: Any) -> Afterwards:
    return replace(Afterwards(0, 600 * 10**9, measures, (RESTS,)), **more)


def level(per_s: float, seconds: float = 600, start: float = 4200) -> Aftermath:
    readings = tuple((float(at), start + per_s * at) for at in range(0, int(seconds), 10))
    return Aftermath("zombies", "node", 0, seconds, seconds, readings)


def test_ten_minutes_of_silence_prove_that_a_loop_stopped() -> None:
    verdicts = assess(make_plan(), [LOOP], since(starts(0, 600)))
    assert verdicts.mechanism.verdict == "proven"
    assert verdicts.mechanism.p is not None
    assert verdicts.mechanism.p < 1e-4
    assert "none in 10m" in verdicts.mechanism.because
    assert verdicts.proven
    assert verdicts.outcome.verdict == "unknown"  # nothing was recorded of resets


def test_half_a_minute_proves_nothing_and_says_what_is_missing() -> None:
    verdicts = assess(make_plan(), [LOOP], since(starts(0, 30)))
    assert verdicts.mechanism.verdict == "unknown"
    (measure,) = verdicts.mechanism.measures
    assert measure.needs_s is not None
    assert 60 < measure.needs_s < 300
    later = assess(make_plan(), [LOOP], since(starts(0, 30 + measure.needs_s)))
    assert later.mechanism.verdict == "proven"


def test_a_back_off_counts_unless_the_unit_is_seen_at_rest() -> None:
    waits = replace(LOOP, backoff_s=300)
    assert assess(make_plan(), [waits], since(starts(0, 300))).mechanism.verdict == "proven"
    unseen = since(starts(0, 300), sources=())
    verdict = assess(make_plan(), [waits], unseen).mechanism
    assert verdict.verdict == "unknown"
    assert "may wait 5m longer" in verdict.because


def test_one_restart_refutes_it() -> None:
    verdicts = assess(make_plan(), [LOOP], since(starts(1, 3600)))
    assert verdicts.mechanism.verdict == "refuted"
    assert not verdicts.proven


def test_a_unit_that_waits_for_its_restart_is_not_at_rest() -> None:
    again = SourceState("unit", UNIT, False, "activating (auto-restart)")
    verdict = assess(make_plan(), [LOOP], since(starts(0, 600), sources=(again,))).mechanism
    assert verdict.verdict == "refuted"
    assert "auto-restart" in verdict.because


@pytest.mark.parametrize(
    "spoil",
    [
        {"rebooted": True},
        {"undone": "the plan was undone at 12:00"},
        {"lost": "the recording ended"},
        {"sources": (SourceState("unit", UNIT, None, "the bus is gone"),)},
    ],
)
def test_what_nobody_saw_is_unknown_and_never_fixed(spoil: dict[str, Any]) -> None:
    verdicts = assess(make_plan(), [LOOP, RESETS], since(starts(0, 600), **spoil))
    assert verdicts.mechanism.verdict == "unknown"
    assert verdicts.outcome.verdict == "unknown"
    assert not verdicts.proven


def test_holes_in_the_observation_are_no_silence() -> None:
    pieces = Aftermath("unit_restarts", UNIT, 0, 600, 20, lost="not recorded for 580 s")
    assert assess(make_plan(), [LOOP], since(pieces)).mechanism.verdict == "unknown"
    nothing = assess(make_plan(), [LOOP], since(starts(None, 0))).mechanism
    assert nothing.verdict == "unknown"
    assert assess(make_plan(), [], since(starts(0, 600))).mechanism.verdict == "unknown"


def test_zombies_that_still_grow_refute_a_silent_loop() -> None:
    both = [LOOP, ZOMBIES]
    grows = assess(make_plan(), both, since(starts(0, 600), level(0.05))).mechanism
    assert grows.verdict == "refuted"
    assert "still grows" in grows.because
    assert assess(make_plan(), both, since(starts(0, 600), level(0))).mechanism.verdict == "proven"


def test_a_level_alone_proves_only_what_stands_still() -> None:
    plan = make_plan()
    assert assess(plan, [ZOMBIES], since(level(0))).mechanism.verdict == "proven"
    assert assess(plan, [ZOMBIES], since(level(0, 60))).mechanism.verdict == "unknown"
    assert assess(plan, [ZOMBIES], since(level(-1))).mechanism.verdict == "unknown"  # reclaim
    brief = replace(ZOMBIES, exposure_s=120)
    assert assess(plan, [brief], since(level(0))).mechanism.verdict == "unknown"
    cache = replace(ZOMBIES, slope_per_s=0.0)
    assert assess(plan, [cache], since(level(0))).mechanism.verdict == "unknown"


def test_cgroups_of_others_do_not_refute() -> None:
    made = Baseline("cgroups_made", "/docker", "mechanism", 300, 600, overdispersion=0.05)
    few = Aftermath("cgroups_made", "/docker", 4, 600, 600)
    many = Aftermath("cgroups_made", "/docker", 290, 600, 600)
    assert assess(make_plan(), [made], since(few)).mechanism.verdict == "proven"
    assert assess(make_plan(), [made], since(many)).mechanism.verdict == "refuted"


# -- outcome ---------------------------------------------------------------------------


def resets(count: int, hours: float) -> Aftermath:
    return Aftermath("resets", "node", count, hours * 3600, hours * 3600)


def test_an_outcome_needs_node_hours() -> None:
    verdict = assess(make_plan(), [RESETS], since(resets(0, 1))).outcome
    assert verdict.verdict == "unknown"
    assert verdict.node_hours_needed is not None
    enough = assess(make_plan(), [RESETS], since(resets(0, 1.05 + verdict.node_hours_needed)))
    assert enough.outcome.verdict == "proven"
    assert assess(make_plan(), [RESETS], since(resets(30, 100))).outcome.verdict == "refuted"


def test_the_reset_that_led_to_the_plan_is_no_rate() -> None:
    once = replace(RESETS, count=1, exposure_s=3600)
    verdict = assess(make_plan(), [once], since(resets(0, 5000))).outcome
    assert verdict.verdict == "unknown"
    assert verdict.node_hours_needed is None
    assert "one, which may have led to it" in verdict.because
    none = replace(once, count=0)
    because = assess(make_plan(), [none], since(resets(0, 5000))).outcome.because
    assert because == "resets: none was recorded before the plan; no rate is known"


# -- predictions -----------------------------------------------------------------------


def test_zombies_freed_as_predicted() -> None:
    freed = Predicted("zombies", 4000, 3800, 4200, "files of tmpfs")
    plan = make_plan(freed, Predicted("restarts", 0, 0, 0, "stopped"))
    after = since(starts(0, 600), level(0, start=210), zombies_before=4210.0)
    verdicts = assess(plan, [LOOP, ZOMBIES], after)
    assert [(each.what, each.measured, each.came) for each in verdicts.predictions] == [
        ("zombies", 4000, True), ("restarts", 0, True),
    ]  # fmt: skip
    assert verdicts.proven
    stayed = since(starts(0, 600), level(0, start=4200), zombies_before=4210.0)
    short = assess(plan, [LOOP, ZOMBIES], stayed)
    assert short.mechanism.verdict == "proven"
    assert not short.proven
    unmeasured = assess(plan, [LOOP], since(starts(0, 600)))
    assert unmeasured.predictions[0].came is None
    assert unmeasured.proven
