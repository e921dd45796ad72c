"""What is proposed first about the root of a chain, and that it does no harm as a command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pytest

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Root
from nodescope.diagnosis.proposals import propose
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action_words import Step, describe_step
from nodescope.records.node_tables import ContainerRow, UnitRow
from nodescope.records.view import Moment, View

TASK = Link("task", "kubelet", "kubelet had it", 4.0, View("top"))
SOURCE = Link("source", "agent", "agent ended", 2.0, View("events"))
WHY = Link("why", "x", "x: enabled", 2.0, View("audit", Moment(0), unit="x"))


NOTHING = Case(Recording([]), Window(0, 10))


def steps(case: Case, links: Sequence[Link], root: Root) -> list[Step]:
    """What is proposed, as a report shows it."""
    return [describe_step(action) for action in propose(case, links, root, 9)]


def unit(name: str, **facts: Any) -> Case:
    row = {"file_state": "enabled", "cgroup": f"/system.slice/{name}", **facts}
    return Case(recording_of([UnitRow(time_ns=1, unit=name, **row)]), Window(0, 10))


def container(**facts: Any) -> Case:
    row = {"time_ns": 1, "runtime": "docker", "id": "7c", "name": "agent", **facts}
    return Case(recording_of([ContainerRow(**row)]), Window(0, 10))


def test_a_unit_that_leaks_is_looked_at_and_stopped() -> None:
    look, stop = steps(unit("ecs.service"), [SOURCE, WHY], Root("unit", "ecs.service"))
    assert look.command == "nodescope audit --at 1970-01-01T00:00:00.000Z --unit x"
    assert stop.command == "systemctl disable --now ecs.service"
    assert "now and at every boot (undone by `systemctl enable --now ecs.service`)" in (
        stop.statement
    )


@pytest.mark.parametrize("name", ["a b.service", "x;reboot.service", "$(id).service", "it's"])
def test_an_odd_name_is_one_word(name: str) -> None:
    _, stop = steps(unit(name), [SOURCE, WHY], Root("unit", name))
    assert stop.command is not None
    assert shlex.split(stop.command) == ["systemctl", "disable", "--now", name]


def test_a_name_is_no_option() -> None:
    _, stop = steps(unit("-.mount"), [SOURCE, WHY], Root("unit", "-.mount"))
    assert stop.command == "systemctl disable --now -- -.mount"


def test_what_starts_a_unit_that_is_not_enabled_is_hinted_at() -> None:
    case = unit("x.service", file_state="static")
    _, stop = steps(case, [SOURCE, WHY], Root("unit", "x.service"))
    assert "until something starts it again: its unit file is static" in stop.statement
    assert "every boot" not in stop.statement


def test_a_unit_of_another_systemd_is_not_taken_for_the_nodes() -> None:
    case = unit("x.service", cgroup="/docker/abc/system.slice/x.service")
    _, stop = steps(case, [SOURCE, WHY], Root("unit", "x.service"))
    assert (
        "by `systemctl disable --now x.service` where its own systemd runs, below /docker/abc"
        in (stop.statement)
    )
    assert stop.command is None  # on the node it might stop another


@pytest.mark.parametrize(
    ("case", "command", "said"),
    [
        (container(), "docker stop agent", "and whatever makes it again"),
        (container(runtime="podman"), "podman stop agent", "and whatever makes it again"),
        (container(runtime="containerd"), None, "stop container agent of containerd"),
        (container(pod="web-1", namespace="shop"), None, "by what runs pod shop/web-1"),
        (
            Case(Recording([]), Window(0, 10)),
            None,
            "stop container agent, and whatever makes it again",
        ),
    ],
)
def test_a_container_is_stopped_by_its_runtime(case: Case, command: str | None, said: str) -> None:
    _, stop = steps(case, [SOURCE], Root("container", "agent"))
    assert stop.command == command
    assert said in stop.statement


@pytest.mark.parametrize("kind", ["unit", "container", "pod", "process"])
def test_who_was_only_on_the_core_is_looked_at(kind: str) -> None:
    (look,) = steps(unit("x"), [TASK], Root(kind, "x"))
    assert look.command == "nodescope top"
    assert f"look at {kind} x first" in look.statement


@pytest.mark.parametrize("kind", ["state", "cgroup", "core", "event"])
def test_a_state_is_nobody_to_stop(kind: str) -> None:
    assert steps(unit("x"), [TASK, SOURCE], Root(kind, "x")) == []
