"""The evidence by which a process counts as the maker of a container."""

from __future__ import annotations

import pytest

from nodescope.records.action import Target
from nodescope.remedy.guard.container_makers import ClientsSeen, choose_maker, makes
from nodescope.sources.processes.process_table import ProcessSeen


@pytest.mark.parametrize(
    "command",
    [
        ["docker", "run", "--rm", "--name", "web", "image"],
        ["/usr/bin/podman", "create", "--name=web", "image"],
        ["sudo", "docker", "-H", "unix:///run/docker.sock", "container", "run", "--name", "web"],
        ["sh", "-c", "while :; do docker run --name web image; docker rm web; done"],
    ],
)
def test_a_command_that_makes_it_is_known(command: list[str]) -> None:
    assert makes(command, "web")


@pytest.mark.parametrize(
    "command",
    [
        ["docker", "logs", "-f", "web"],
        ["docker", "start", "web"],  # the container keeps its id: somebody else makes it
        ["docker", "run", "--name", "monitor", "image", "web"],
        ["docker", "run", "--name", "web-2", "image"],
        ["exporter", "--container", "web"],
        ["vi", "/etc/web"],
        ["sh", "-c", "docker logs web; run --name web"],
        ["nodescope", "fix", "plan", "--stop-container", "web"],
        [],
    ],
)
def test_a_command_that_only_names_it_is_not(command: list[str]) -> None:
    assert not makes(command, "web")


def _process(pid: int) -> ProcessSeen:
    return ProcessSeen(pid, 1, "docker", (), pid, None, frozenset())


def test_of_two_makers_none_is_chosen_and_both_are_named() -> None:
    seen = ClientsSeen({"a.service": _process(5), "b.service": _process(6)}, ())
    maker = choose_maker("web", seen, lambda _process: Target("unit", "a.service"))
    assert maker.target is None
    assert "a.service and b.service" in maker.why


def test_a_client_that_makes_nothing_is_named_and_not_chosen() -> None:
    seen = ClientsSeen({}, ("monitor.service",))
    maker = choose_maker("web", seen, lambda _process: Target("unit", "monitor.service"))
    assert maker.target is None
    assert "not known by whom" in maker.why
    assert "monitor.service" in maker.why


def test_a_maker_that_is_no_unit_of_this_systemd_is_not_stopped() -> None:
    maker = choose_maker("web", ClientsSeen({"session-3.scope": _process(5)}, ()), lambda _: None)
    assert maker.target is None
    assert "session-3.scope" in maker.why
