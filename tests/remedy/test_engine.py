"""Steps on containers by an engine that answers docker's API as podman does; none runs here."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.sources.containers.daemons import http_answer, listening

from nodescope.errors import RemedyError
from nodescope.records.action import Target
from nodescope.remedy.actions.catalogue import find_operation
from nodescope.remedy.engine import open_engine
from nodescope.remedy.guard.container_makers import find_maker
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep, StepName
from nodescope.sources.places import Places

_ID = "3f2a" * 16


@dataclass
class FakePodman:
    """One container, and what was asked; `deaf` accepts an update and does nothing."""

    container: dict[str, Any]
    deaf: bool = False
    refusals: int = 0  # of updates, before one is taken
    asked: list[str] = field(default_factory=list)

    def talk(self, connection: socket.socket) -> None:
        """Answer one request."""
        head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        self.asked.append(f"{method} {target}")
        path = target.partition("?")[0]
        if path.endswith("/json") and path.split("/")[2] in (_ID, "web"):
            connection.sendall(http_answer(json.dumps(self.container).encode()))
        elif path.endswith("/json"):
            connection.sendall(http_answer(b'{"message": "no such container"}', 404))
        elif path.endswith("/update") and self.refusals:
            self.refusals -= 1
            connection.sendall(
                http_answer(b'{"message": "cannot update a stopped one"}', 500)
            )
        elif path.endswith("/update"):
            if not self.deaf:
                self.container["HostConfig"] |= json.loads(body)
            connection.sendall(http_answer(b"{}"))
        elif path.endswith("/stop"):
            self.container["State"]["Status"] = "exited"
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        else:
            connection.sendall(http_answer(b'{"cause": "container is locked"}', 500))


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[FakePodman]:
    path = tmp_path / "run/podman/podman.sock"
    path.parent.mkdir(parents=True)
    policy = {"Name": "on-failure", "MaximumRetryCount": 4}
    fake = FakePodman({
        "Id": _ID, "Name": "web", "State": {"Status": "running"}, "RestartCount": 0,
        "HostConfig": {"RestartPolicy": policy}, "Config": {"Labels": {}},
    })  # fmt: skip
    with listening(path, fake.talk):
        yield fake


@pytest.fixture
def access(tmp_path: Path) -> NodeAccess:
    (tmp_path / "proc").mkdir(exist_ok=True)
    return NodeAccess(Places(root=tmp_path))


def _step(kind: StepName, name: str = "web", **arguments: str) -> PlanStep:
    target = Target("container", name, runtime="podman")
    return PlanStep(kind, target, "a test", arguments, (), (), "as it was")


def test_a_policy_comes_back_with_its_retries(podman: FakePodman, access: NodeAccess) -> None:
    step, operation = _step("set_restart_policy", policy="no"), find_operation("set_restart_policy")
    before = operation.capture(step, access)
    after = operation.apply(step, access, before)
    assert podman.container["HostConfig"]["RestartPolicy"]["Name"] == "no"
    operation.undo(step, access, before, after)
    policy = {"Name": "on-failure", "MaximumRetryCount": 4}
    assert podman.container["HostConfig"]["RestartPolicy"] == policy
    changing = [each for each in podman.asked if each.startswith("POST")]
    assert changing == [f"POST /containers/{_ID}/update"] * 2  # by id, never by name


def test_a_policy_is_set_again_if_a_round_ended_meanwhile(
    podman: FakePodman, access: NodeAccess
) -> None:
    podman.refusals = 2
    step, operation = _step("set_restart_policy", policy="no"), find_operation("set_restart_policy")
    operation.apply(step, access, operation.capture(step, access))
    assert podman.container["HostConfig"]["RestartPolicy"]["Name"] == "no"
    podman.refusals = 1000
    with pytest.raises(RemedyError, match="cannot update a stopped one"):
        operation.apply(step, access, operation.capture(step, access))


def test_an_engine_that_does_not_do_it_is_found_out(podman: FakePodman, access: NodeAccess) -> None:
    podman.deaf = True
    step, operation = _step("set_restart_policy", policy="no"), find_operation("set_restart_policy")
    with pytest.raises(RemedyError, match="did not take it over"):
        operation.apply(step, access, operation.capture(step, access))


def test_a_refusal_is_told_in_the_engines_words(podman: FakePodman, access: NodeAccess) -> None:
    step, operation = _step("stop_container"), find_operation("stop_container")
    before = operation.capture(step, access)
    after = operation.apply(step, access, before)
    with pytest.raises(RemedyError, match="podman refused: container is locked"):
        operation.undo(step, access, before, after)


def test_the_unit_that_makes_it_is_named(podman: FakePodman, access: NodeAccess) -> None:
    podman.container["Config"]["Labels"]["PODMAN_SYSTEMD_UNIT"] = "web.service"
    maker = find_maker(podman.container, open_engine(access, "podman"), access)
    assert maker is not None
    assert maker.target == Target("unit", "web.service")
    refused = find_operation("stop_container").check(_step("stop_container"), access)
    assert refused == "web.service makes it: stop that unit instead"


@pytest.mark.parametrize("name", ["../info", "a/b", "x?force=1", "a b", "", "a\nb", "ä"])
def test_a_hostile_name_never_becomes_a_request(
    podman: FakePodman, access: NodeAccess, name: str
) -> None:
    refused = find_operation("stop_container").check(_step("stop_container", name), access)
    assert refused is not None
    assert podman.asked == []


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("set_restart_policy", {"policy": "sometimes"}, "not a restart policy"),
        ("set_restart_policy", {"policy": "no", "retries": "x"}, "not a number of retries"),
        ("set_container_limit", {"limit": "disk", "value": "1"}, "not a limit"),
        ("set_container_limit", {"limit": "memory"}, "names no new limit"),
        ("stop_container", {"timeout_s": "-1"}, "not a time-out"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(
    access: NodeAccess, kind: StepName, arguments: dict[str, str], words: str
) -> None:
    assert words in (find_operation(kind).check(_step(kind, **arguments), access) or "")


def test_an_engine_that_is_not_there_is_reported(access: NodeAccess) -> None:
    refused = find_operation("stop_container").check(_step("stop_container"), access)
    assert "podman.sock" in (refused or "")
