"""What lasts on a node: each kind of condition, its owner, since when, its trend; and silence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from nodescope.judgement.condition import Condition, ConditionOwner
from nodescope.judgement.conditions import find_conditions, unobserved
from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.node_tables import (
    CgroupNameRow,
    CgroupRow,
    ContainerRow,
    DyingParentRow,
    MemoryCgroupsRow,
    PressureRow,
    UnitRow,
)
from nodescope.records.recorder_tables import EventRow, HeartbeatRow
from nodescope.records.table import Row
from nodescope.records.witness_tables import LimitRow

NOW = 2 * HOUR_NS
UNIT = "/system.slice/web.service"
POD = "/kubepods/burstable/pod1/c1"
NODE = "node"


def conditions(*rows: Row, until: int = NOW, since: int = 0) -> list[Condition]:
    begun = (HeartbeatRow(time_ns=since, wall_ns=since), HeartbeatRow(time_ns=NOW, wall_ns=NOW))
    return find_conditions(recording_of([*begun, *rows]), Window(0, until + 1))


def only(*rows: Row) -> Condition:
    (found,) = conditions(*rows)
    return found


def minutes_ago(minutes: float) -> int:
    return NOW - round(minutes * MINUTE_NS)


def event(kind: str, subject: str, ago: float, **details: Any) -> EventRow:
    return EventRow(
        time_ns=minutes_ago(ago), kind=kind, subject=subject, message="said",
        details=json.dumps(details),
    )  # fmt: skip


NAMES = (
    CgroupNameRow(time_ns=NOW - 1, cgroup=UNIT, kind="unit", unit="web.service"),
    CgroupNameRow(time_ns=NOW - 1, cgroup=POD, kind="container", namespace="shop", pod="cart-0",
                  container="cart", container_id="c1"),
)  # fmt: skip


# -- zombies ---------------------------------------------------------------------------


def zombies(counts: Iterable[tuple[float, int]]) -> list[Row]:
    """Rows of `memory_cgroups`: how many minutes ago, and how many were dying."""
    return [
        MemoryCgroupsRow(time_ns=minutes_ago(ago), version="v2", tracked=dying + 100, visible=100,
                         dying=dying)
        for ago, dying in counts
    ]  # fmt: skip


def test_zombies_have_a_rate_with_an_interval_and_the_time_until_they_are_critical() -> None:
    found = only(*zombies((60 - minute, 5_484 + 10 * minute) for minute in range(61)))
    assert (found.kind, found.severity, found.since_ns) == ("zombies", "warning", None)
    assert found.statement == "6,084 zombie memory cgroups (critical from 10,000)"
    assert found.trend == "growing by 600 an hour (600 to 600); critical in 6h 32m"
    assert [step.kind for step in found.steps] == ["stop_leak", "free_zombies"]


def test_zombies_that_were_many_before_they_fell_are_not_called_new() -> None:
    counts = [(30, 9_000), (20, 9_160), (10, 1_000), (5, 3_500), (0, 4_570)]
    assert only(*zombies(counts)).since_ns is None  # many from the first reading on
    assert only(*zombies([(40, 10), *counts])).since_ns == minutes_ago(30)


def test_an_uneven_growth_has_a_wide_interval() -> None:
    grown = [(60 - minute, 5_000 + (4 if minute < 30 else 16) * minute) for minute in range(61)]
    assert "(240 to " in only(*zombies(grown)).trend


def test_zombies_that_are_critical_within_the_hour_are_critical_now() -> None:
    found = only(*zombies((60 - minute, 3_000 + 100 * minute) for minute in range(61)))
    assert found.severity == "critical"


def test_zombies_that_passed_the_threshold_lately_have_a_beginning() -> None:
    found = only(*zombies((60 - minute, 1_600 + 10 * minute) for minute in range(61)))
    assert found.since_ns == minutes_ago(20)


def test_two_looks_are_no_forecast() -> None:
    assert only(*zombies([(1, 5_000), (0.5, 5_010), (0, 5_020)])).trend == (
        "+20 in 1m, too short for a forecast"
    )


def test_the_owner_of_most_zombies_is_named() -> None:
    parents = [
        DyingParentRow(time_ns=NOW - 2, path=UNIT, dying=4_000),
        DyingParentRow(time_ns=NOW - 2, path="/other", dying=1_000),
    ]
    found = only(*zombies([(1, 5_000), (0, 5_000)]), *parents, *NAMES)
    assert found.owner == ConditionOwner("unit", "web.service")


def test_some_zombies_are_on_every_node() -> None:
    assert conditions(*zombies((60 - minute, 300 + minute) for minute in range(61))) == []


# -- units and containers ------------------------------------------------------------------


def restarts(first: int, count: int) -> list[Row]:
    told: list[Row] = []
    for number in range(count):
        ago = (count - number) * 0.1
        run = {"invocation": f"run{number}"}
        told += [
            event("unit_started", "web.service", ago, **run),
            event("unit_exit", "web.service", ago - 0.01, **run, exit_kind="exited", exit_status=3),
            event("unit_restart", "web.service", ago - 0.02, **run, restarts=first + number),
        ]
    return told


def unit(**more: Any) -> UnitRow:
    known = {"load": "loaded", "active": "active", "sub": "running", "file_state": "enabled"}
    return UnitRow(time_ns=NOW - SECOND_NS, unit="web.service", **known | more)


def test_a_unit_that_loops_has_begun_with_its_first_restart() -> None:
    found = only(unit(active="activating", sub="auto-restart"), *restarts(1, 10))
    assert (found.kind, found.owner) == ("unit_loop", ConditionOwner("unit", "web.service"))
    assert found.since_ns == minutes_ago(0.98)
    assert found.statement.startswith("web.service loops: restarted 10 times, every 6 s; ")
    assert found.trend == "10 restarts in 10m"
    assert [step.kind for step in found.steps] == ["look", "stop_unit"]


def test_a_loop_is_counted_in_the_time_that_was_recorded() -> None:
    rows = (unit(active="activating", sub="auto-restart"), *restarts(1, 10))
    (found,) = conditions(*rows, since=minutes_ago(1.5))
    assert found.trend == "10 restarts in 1m 30s"


def test_a_loop_that_was_there_before_the_recording_has_no_beginning() -> None:
    assert only(unit(active="activating", sub="auto-restart"), *restarts(40, 10)).since_ns is None


def test_a_journal_without_rows_of_units_shows_the_loop() -> None:
    assert only(*restarts(1, 10)).kind == "unit_loop"


def test_a_unit_that_failed_or_is_held_back_is_a_condition() -> None:
    failed = unit(active="failed", sub="failed", result="exit-code", exit_kind="exited",
                  exit_status=1)  # fmt: skip
    assert only(failed).statement == "web.service failed: ended with exit code 1"
    held = unit(active="inactive", sub="dead", why_not_started="dependency:disk.mount")
    assert (only(held).kind, only(held).trend) == ("unit_held_back", "")


def container(kind: str, ago: float, number: int, **details: Any) -> EventRow:
    known = {"runtime": "containerd", "id": f"id{number}", "name": "cart", "pod": "cart-0",
             "namespace": "shop"}  # fmt: skip
    return event(kind, "shop/cart-0/cart", ago, **known, **details)


def killed(count: int, restarts: int) -> list[Row]:
    """Runs of a container of a pod that end at its memory limit, with growing pauses."""
    told: list[Row] = []
    ago = 1.0
    for number in reversed(range(count)):
        told += [
            container("container_started", ago, number, restarts=restarts + number),
            container("container_exit", ago - 0.1, number, exit_status=137, ran_s=6.0),
        ]
        ago *= 2
    return told


def test_a_container_killed_at_its_memory_limit_again_and_again_loops() -> None:
    found = only(*killed(3, 0))
    assert (found.kind, found.owner.kind) == ("container_loop", "pod")
    assert found.owner.name == "shop/cart-0 (cart)"
    assert "exit code 137" in found.statement
    assert found.since_ns == minutes_ago(4)
    assert [step.kind for step in found.steps] == ["look", "stop_container"]


def test_two_failures_of_a_pod_are_a_loop_and_one_is_if_the_kubelet_counted_more() -> None:
    assert only(*killed(2, 0)).kind == "container_loop"
    assert conditions(*killed(1, 0)) == []
    counted = only(*killed(1, 7))
    assert counted.kind == "container_loop"
    assert "7 restarts since its pod was made" in counted.statement
    assert counted.since_ns is None


def test_a_container_that_waits_to_be_started_again_loops() -> None:
    waits = ContainerRow(
        time_ns=NOW - 1, runtime="containerd", id="id7", name="cart", pod="cart-0",
        namespace="shop", state="exited", exit_status=137, restarts=5,
        started_wall_ns=minutes_ago(4), finished_wall_ns=minutes_ago(3),
    )  # fmt: skip
    assert only(waits).kind == "container_loop"


def test_pods_that_were_all_started_again_by_a_boot_do_not_loop() -> None:
    young = ContainerRow(
        time_ns=NOW - 1, runtime="containerd", id="id7", name="cart", pod="cart-0",
        namespace="shop", state="running", restarts=12, started_wall_ns=minutes_ago(4),
    )  # fmt: skip
    assert conditions(young) == []


# -- limits --------------------------------------------------------------------------------


def filling(name: str, scope: str, used: Iterable[int], most: int = 1000) -> list[Row]:
    """One reading a minute, the last one now."""
    listed = list(used)
    return [
        LimitRow(time_ns=minutes_ago(len(listed) - 1 - at) - 1, name=name, scope=scope, used=each,
                 most=most)
        for at, each in enumerate(listed)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("used", "severity"), [(890, None), (900, "warning"), (949, "warning"), (950, "critical")]
)
def test_a_limit_is_judged_by_how_much_of_it_is_used(used: int, severity: str | None) -> None:
    found = conditions(*filling("conntrack", "node", [used] * 5))
    assert [each.severity for each in found] == ([] if severity is None else [severity])


def test_a_limit_that_is_reached_within_the_hour_is_critical_now() -> None:
    rising = filling("files", "node", range(700, 830, 10))
    found = only(*rising)
    assert (found.severity, found.owner.kind) == ("critical", "node")
    assert found.trend == "grew by 120 files in 12m; full in 18m"
    assert conditions(*filling("files", "node", range(100, 230, 10))) == []  # far off yet


def test_a_burst_is_no_trend() -> None:
    assert conditions(*filling("files", "node", [700] * 12 + [850])) == []


def test_a_file_system_is_the_owner_of_its_fullness() -> None:
    (row,) = filling("disk", "/data", [961 << 30], 1000 << 30)
    found = only(row)
    assert found.owner == ConditionOwner("file system", "/data")
    assert found.statement == "file system /data: 96% used, 39 GiB of 1000 GiB left"
    assert (found.steps[0].value or "").startswith("du -xh /data ")


def test_a_file_system_that_was_unmounted_is_no_condition() -> None:
    full = LimitRow(time_ns=minutes_ago(20), name="disk", scope="/gone", used=99, most=100)
    begun = (HeartbeatRow(time_ns=0, wall_ns=0), HeartbeatRow(time_ns=NOW, wall_ns=NOW))
    other = LimitRow(time_ns=NOW - 1, name="disk", scope="/", used=1, most=100)
    first, second = recording_of([begun[0], full]), recording_of([begun[1], other])
    both = type(first)([*first.parts, *second.parts], first.node)
    assert find_conditions(both, Window(0, NOW + 1)) == []


def test_tasks_of_a_cgroup_are_its_owners() -> None:
    found = only(*filling("pids", UNIT, [97], 100), *NAMES)
    assert (found.kind, found.owner) == ("pids_nearly_full", ConditionOwner("unit", "web.service"))


# -- cgroups -------------------------------------------------------------------------------


def cgroup(path: str, **columns: Iterable[int]) -> list[Row]:
    """One reading every half minute, the last one now."""
    listed = list(zip(*columns.values(), strict=True))
    return [
        CgroupRow(time_ns=minutes_ago((len(listed) - 1 - at) / 2) - 1, cgroup=path,
                  **dict(zip(columns, values, strict=True)))
        for at, values in enumerate(listed)
    ]  # fmt: skip


def test_memory_that_grows_into_its_limit_is_told_before_it_is_there() -> None:
    grows = cgroup(POD, memory_bytes=range(700 << 20, 900 << 20, 10 << 20),
                   memory_limit_bytes=[1 << 30] * 20)  # fmt: skip
    found = only(*grows, *NAMES)
    assert (found.kind, found.owner.name) == ("memory_limit_near", "shop/cart-0 (cart)")
    assert found.trend.startswith("grew by 190 MiB in 9m 30s; at its limit in 6m ")


def test_page_cache_that_fills_a_limit_is_no_condition() -> None:
    full = cgroup(POD, memory_bytes=[(1 << 30) - 4096] * 20, memory_limit_bytes=[1 << 30] * 20)
    assert conditions(*full, *NAMES) == []


def test_a_throttled_cgroup_is_a_condition_after_minutes() -> None:
    throttled = {"periods": range(0, 3000, 300), "throttled": range(0, 1500, 150)}
    found = only(*cgroup(UNIT, **throttled), *NAMES)
    assert (found.kind, found.owner.name) == ("cpu_throttled", "web.service")
    assert "50% of the periods" in found.statement
    brief = {name: values[:3] for name, values in throttled.items()}
    assert conditions(*cgroup(UNIT, **brief), *NAMES) == []
    little = {"periods": range(0, 3000, 300), "throttled": range(0, 500, 50)}
    assert conditions(*cgroup(UNIT, **little), *NAMES) == []


def pressure(path: str, resource: str, share: float, minutes: float = 5) -> list[Row]:
    full_us = share * minutes * 60e6
    return [
        PressureRow(time_ns=minutes_ago(minutes) + 1, cgroup=path, resource=resource, some_us=0,
                    full_us=0),
        PressureRow(time_ns=NOW - 1, cgroup=path, resource=resource, some_us=round(full_us),
                    full_us=round(full_us)),
    ]  # fmt: skip


def test_waiting_for_memory_names_who_waits() -> None:
    assert only(*pressure("", "memory", 0.15)).owner.kind == "node"
    both = pressure("", "memory", 0.15) + pressure(UNIT, "memory", 0.9)
    assert only(*both, *NAMES).owner == ConditionOwner("unit", "web.service")


def test_a_copy_that_waits_for_the_disk_is_no_condition() -> None:
    assert conditions(*pressure("", "io", 0.9, minutes=2)) == []
    assert conditions(*pressure(UNIT, "io", 0.99), *NAMES) == []
    assert only(*pressure("", "io", 0.9)).kind == "io_pressure"


# -- reports -------------------------------------------------------------------------------


def test_corrected_errors_that_keep_coming_are_a_condition() -> None:
    told = [event("edac_ce", "mc0", ago, device="DIMM_A1", before=9 - number, value=10 - number)
            for number, ago in enumerate((2, 10, 30))]  # fmt: skip
    found = only(*told)
    assert (found.kind, found.owner) == ("edac_ce", ConditionOwner("device", "DIMM_A1"))
    assert found.trend == "3 more in 28m, 3 reports"
    assert found.since_ns == minutes_ago(30)
    assert conditions(*told[:2]) == []


def test_an_unsynchronised_clock_and_unreaped_processes_are_conditions() -> None:
    assert only(event("clock_unsynchronized", "clock", 50)).owner.kind == "node"
    reaped = event("process_zombies", "bash", 5, parent="bash", pid=7, count=40, cgroup=UNIT)
    assert only(reaped, *NAMES).owner == ConditionOwner("unit", "web.service")


# -- all of it -----------------------------------------------------------------------------


def test_the_worst_is_first_and_a_moment_has_its_own() -> None:
    late = [*filling("disk", "/data", [960]), *killed(3, 0)]
    assert [each.severity for each in conditions(*late)] == ["critical", "warning"]
    assert conditions(*late, until=minutes_ago(30)) == []


def test_a_busy_node_has_none() -> None:
    busy = [
        *zombies((60 - minute, 250) for minute in range(61)),
        *filling("disk", "/", [600] * 9), *filling("pids", UNIT, [10, 40, 12], 100),
        *cgroup(UNIT, periods=range(0, 3000, 300), throttled=range(0, 300, 30)),
        *pressure("", "memory", 0.02), *pressure("", "io", 0.3), unit(restarts=1), *NAMES,
    ]  # fmt: skip
    assert conditions(*busy) == []


def test_what_was_not_recorded_is_named() -> None:
    begun = (HeartbeatRow(time_ns=0, wall_ns=0), HeartbeatRow(time_ns=NOW, wall_ns=NOW))
    unseen = unobserved(recording_of([*begun, unit()]), Window(0, NOW + 1))
    assert "zombie memory cgroups" in unseen
    assert "units that loop, fail or are held back" not in unseen
