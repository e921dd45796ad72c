"""Verdicts on containers."""

from __future__ import annotations

from dataclasses import replace

from nodescope.judgement.containers import audit_containers, happenings_of
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.records.details import read_details
from nodescope.records.event import Event
from nodescope.records.event_details import ContainerExitDetails, ContainerStartDetails
from nodescope.sources.containers.container import Container, ContainerHappening, HappeningKind

NOW = 1_794_832_000 * SECOND_NS
RUNS = Container(
    "docker",
    "id",
    name="web",
    image="shop",
    state="running",
    pid=7,
    restarts=0,
    started_wall_ns=NOW - 3600 * SECOND_NS,
    cgroup_parent="/docker",
)
ENDED = replace(RUNS, state="exited", pid=None, finished_wall_ns=NOW - 60 * SECOND_NS)


def ends(*codes: int, ran_ns: int = SECOND_NS, new_ids: bool = True) -> list[ContainerHappening]:
    found = []
    for number, code in enumerate(codes):
        at_ns = NOW - (len(codes) - number) * 10 * SECOND_NS
        container = replace(RUNS, id=f"id{number}" if new_ids else "id", exit_status=code)
        found.append(ContainerHappening(HappeningKind.STARTED, at_ns, container))
        found.append(ContainerHappening(HappeningKind.EXITED, at_ns + ran_ns, container, ran_ns))
    return found


def verdicts(
    containers: list[Container], happened: list[ContainerHappening]
) -> list[tuple[str, str]]:
    return [(each.name, each.verdict) for each in audit_containers(containers, happened, NOW)]


def test_healthy_ones_are_not_named() -> None:
    healthy = [
        RUNS,
        replace(ENDED, name="done", exit_status=0),
        replace(ENDED, name="stopped", exit_status=143),
        replace(ENDED, name="killed", exit_status=137),
        replace(RUNS, name="new", state="created", started_wall_ns=None),
        replace(RUNS, name="restarted long ago", restarts=9),
    ]
    assert verdicts(healthy, ends(0, 0)) == []


def test_a_loop_with_rate_parent_and_age() -> None:
    youngest = replace(RUNS, id="id9", started_wall_ns=NOW - 2 * SECOND_NS)
    (found,) = audit_containers([youngest], ends(5, 5, 5, 5), NOW)
    assert (found.kind, found.name, found.verdict) == ("container", "web", "looping")
    assert found.evidence["per_minute"] == 6.0
    assert found.evidence["cgroup_parent"] == "/docker"
    assert found.evidence["ids"] == 4
    assert found.evidence["youngest_s"] == 2.0
    assert "4 ids under one name" in found.reason
    assert "the last 10 s ago" in found.reason


def test_a_loop_that_is_over_is_none_any_more() -> None:
    happened = [replace(each, wall_ns=each.wall_ns - 11 * MINUTE_NS) for each in ends(5, 5, 5, 5)]
    assert verdicts([RUNS], happened) == []
    (found,) = audit_containers([], happened, NOW)
    assert found.verdict == "never_succeeded"
    assert found.reason == "all 4 runs failed, the last with exit code 5; it is gone now"


def test_a_counter_that_rose_is_a_loop_though_nobody_watched() -> None:
    again = replace(ENDED, state="restarting", restarts=19, exit_status=3)
    (found,) = audit_containers([again], [], NOW)
    assert (found.verdict, found.evidence["restarts"]) == ("looping", 19)
    assert found.reason == "restarted 19 times, restarting now, exit code 3"
    recent = replace(RUNS, restarts=4, started_wall_ns=NOW - MINUTE_NS)
    assert verdicts([recent], []) == [("web", "looping")]


def test_one_that_never_succeeded() -> None:
    assert verdicts([replace(ENDED, exit_status=2)], ends(2, 2)) == [("web", "never_succeeded")]
    assert verdicts([replace(ENDED, exit_status=2)], ends(0, 2)) == [("web", "failing")]


def test_one_that_failed_once() -> None:
    (found,) = audit_containers([replace(ENDED, exit_status=2)], [], NOW)
    assert found.verdict == "failing"
    assert found.reason == "ended with exit code 2 1m ago and does not run"


def test_what_a_recording_and_the_daemon_both_tell_counts_once() -> None:
    happened = ends(5, 5)
    shifted = [replace(each, wall_ns=each.wall_ns + 900_000) for each in happened]
    assert verdicts([], [*happened, *shifted]) == [("web", "never_succeeded")]


def test_events_of_a_recording_become_happenings() -> None:
    end = ContainerExitDetails(runtime="docker", id="a1", name="web", exit_status=5, ran_s=1.5)
    nonsense = read_details(ContainerExitDetails, {"exit_status": "x", "ran_s": "y"})
    events = [
        Event(NOW, "container_started", "web", "", details=ContainerStartDetails(id="a1")),
        Event(NOW + 5, "container_exit", "web", "", details=end),
        Event(NOW + 6, "nic_reset", "eth0", ""),
        Event(NOW + 7, "container_exit", "web", "", details=nonsense),
    ]
    started, ended, hostile = happenings_of(events)
    assert (started.kind, started.container.id) == (HappeningKind.STARTED, "a1")
    assert (ended.container.exit_status, ended.ran_ns) == (5, 1_500_000_000)
    assert (hostile.container.exit_status, hostile.ran_ns) == (None, None)
