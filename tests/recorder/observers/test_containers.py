"""The observer of containers: rows when they change, events at their times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodescope.errors import SourceAbsent, SourceError
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.containers import Containers
from nodescope.records.event_details import (
    ContainerExitDetails,
    ContainerLoopDetails,
    ContainerStartDetails,
)
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.node_tables import ContainerRow
from nodescope.sources.containers.container import Container, ContainerHappening, HappeningKind
from nodescope.sources.containers.runtimes import Polled

OFFSET_NS = 1_794_832_000_000_000_000
WEB = Container(
    "docker", "a1", name="web", image="shop", state="running", pid=7, restarts=0,
    started_wall_ns=OFFSET_NS, cgroup="/docker/a1", cgroup_parent="/docker",
)  # fmt: skip


class Clock:
    """Wall time is `OFFSET_NS` ahead."""

    now_ns = 100 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns + OFFSET_NS


class Said:
    """Runtimes that say what a test lets them say."""

    def __init__(self, *containers: Container) -> None:
        self.containers = {(each.runtime, each.id): each for each in containers}
        self.polled = Polled()
        self.closed = False

    def poll(self, _: int) -> Polled:
        polled, self.polled = self.polled, Polled(failed=self.polled.failed)
        return polled

    def happen(self, kind: HappeningKind, second: int, container: Container, **more: int) -> None:
        wall_ns = OFFSET_NS + second * SECOND_NS
        self.polled.happenings.append(ContainerHappening(kind, wall_ns, container, **more))

    def close(self) -> None:
        self.closed = True


def make(said: Said) -> Containers:
    return Containers(said, Clock())  # type: ignore[arg-type]


NOW = Clock.now_ns


def test_rows_when_something_changed_and_whole_in_a_new_segment() -> None:
    said = Said(WEB)
    observer = make(said)
    (row,) = observer.observe(NOW).rows_of(ContainerRow)
    assert (row.time_ns, row.name, row.cgroup_parent) == (NOW, "web", "/docker")
    assert observer.observe(NOW + 1).empty
    said.containers["docker", "a1"] = replace(WEB, state="paused")
    assert len(observer.observe(NOW + 2).rows_of(ContainerRow)) == 1
    observer.begin_segment()
    assert len(observer.observe(NOW + 3).rows_of(ContainerRow)) == 1


def test_starts_and_ends_at_their_own_times() -> None:
    said = Said()
    observer = make(said)
    observer.observe(NOW)
    ended = replace(WEB, state="exited", exit_status=5, restarts=None)
    said.happen(HappeningKind.STARTED, 20, WEB)
    said.happen(HappeningKind.EXITED, 30, ended, ran_ns=10 * SECOND_NS)
    said.happen(HappeningKind.REMOVED, 31, replace(WEB, state="removed"))
    observation = observer.observe(NOW)
    start, end = observation.events
    assert (start.time_ns, start.kind, start.subject) == (
        20 * SECOND_NS,
        "container_started",
        "web",
    )
    assert (end.time_ns, end.kind) == (30 * SECOND_NS, "container_exit")
    assert end.message == "ended with exit code 5 after 10 s"
    assert end.get(ContainerExitDetails).exit_status == 5
    assert end.get(ContainerExitDetails).ran_s == 10.0
    assert end.get(ContainerExitDetails).cgroup_parent == "/docker"
    (row,) = observation.rows_of(ContainerRow)  # it came and went between two looks
    assert (row.state, row.exit_status) == ("removed", 5)
    assert row.pid is None


def test_a_restart_and_a_replacement_are_told_apart() -> None:
    said = Said(WEB)
    observer = make(said)
    observer.observe(NOW)
    said.happen(HappeningKind.STARTED, 40, replace(WEB, restarts=1))
    said.happen(HappeningKind.STARTED, 50, replace(WEB, id="b2"))
    again, anew = observer.observe(NOW).events
    assert (again.kind, again.message) == ("container_restart", "started again (restart 1)")
    assert (anew.kind, anew.get(ContainerStartDetails).replaces) == ("container_started", "a1")


def test_a_loop_is_an_event_with_its_rate_and_parent() -> None:
    said = Said()
    observer = make(said)
    for number in range(4):
        container = replace(WEB, id=f"id{number}")
        ended = replace(container, state="exited", exit_status=5)
        said.happen(HappeningKind.STARTED, 10 * number, container)
        said.happen(HappeningKind.EXITED, 10 * number + 1, ended, ran_ns=SECOND_NS)
    events = observer.observe(NOW).events
    (loop,) = [event for event in events if event.kind == "container_loop"]
    assert EVENT_KINDS["container_loop"].serious
    assert (loop.subject, loop.time_ns) == ("web", 20 * SECOND_NS)
    assert loop.get(ContainerLoopDetails).per_minute == 6.0
    assert loop.get(ContainerLoopDetails).cgroup_parent == "/docker"
    assert loop.get(ContainerLoopDetails).ids == 3
    assert all(event.kind in EVENT_KINDS for event in events)


def test_what_vanished_unseen_is_removed() -> None:
    said = Said(WEB)
    observer = make(said)
    observer.observe(NOW)
    said.containers.clear()
    (row,) = observer.observe(NOW).rows_of(ContainerRow)
    assert row.state == "removed"
    assert observer.observe(NOW).empty


def test_times_ahead_of_now_are_not_believed() -> None:
    said = Said()
    observer = make(said)
    said.happen(HappeningKind.STARTED, 5000, WEB)
    (event,) = observer.observe(NOW).events
    assert event.time_ns == NOW


def test_a_runtime_that_does_not_answer_is_a_gap_until_it_does() -> None:
    said = Said(WEB)
    observer = make(said)
    said.polled.failed["containerd"] = SourceError("/run/x.sock", "no answer within 2 s")
    first = observer.observe(NOW)
    assert [event.kind for event in first.events] == ["source_degraded"]
    assert len(first.rows_of(ContainerRow)) == 1
    assert observer.observe(NOW + 5).empty
    said.polled = Polled()
    (gap,) = observer.observe(NOW + 9).gaps
    assert (gap.from_ns, gap.to_ns, gap.reason) == (NOW, NOW + 9, "containerd did not answer")


def test_absence_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said = Said()
    observer = make(said)

    def absent(_: int) -> Polled:
        raise SourceAbsent("containers", "none")

    monkeypatch.setattr(said, "poll", absent)
    with pytest.raises(SourceAbsent):
        observer.observe(NOW)
    observer.close()
    assert said.closed
