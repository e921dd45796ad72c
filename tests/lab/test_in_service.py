"""Machines as /proc shows them: whom the lab may not touch unasked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nodescope.lab.in_service import CONSENT, find_signs, has_consent
from nodescope.sources.places import Places

Machine = Callable[..., Places]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with these processes, by number; the second is the kernel's unless said."""

    def make(*comms: str, second: str = "kthreadd") -> Places:
        for number, comm in enumerate((comms[0], second, *comms[1:]), start=1):
            (tmp_path / f"proc/{number}").mkdir(parents=True)
            (tmp_path / f"proc/{number}/comm").write_text(f"{comm}\n")
        return Places(root=tmp_path)

    return make


def test_nothing_speaks_against_a_machine_that_only_runs_us(machine: Machine) -> None:
    places = machine("process_api", "bash", "python")
    (places.root / ".dockerenv").touch()  # its image was made by docker: it is no container
    assert find_signs(places) == []


@pytest.mark.parametrize("first", ["systemd", "init", "openrc-init", "runit", "s6-svscan"])
def test_an_init_system_serves(machine: Machine, first: str) -> None:
    assert find_signs(machine(first, "bash")) == [f"its first process is {first}"]


@pytest.mark.parametrize("first", ["sleep", "bash", "systemd", "tini"])
def test_a_container_hides_whom_its_machine_serves(machine: Machine, first: str) -> None:
    (sign,) = find_signs(machine(first, "python", second="bash"))
    assert "this is a container" in sign


@pytest.mark.parametrize("runner", ["kubelet", "containerd", "dockerd", "crio", "k3s-server"])
def test_who_runs_containers_serves(machine: Machine, runner: str) -> None:
    assert find_signs(machine("process_api", "bash", runner)) == [f"{runner} runs on it"]


def test_all_that_was_seen_is_told(machine: Machine) -> None:
    signs = find_signs(machine("systemd", "kubelet", "containerd", "containerd"))
    assert signs == [
        "its first process is systemd", "containerd runs on it", "kubelet runs on it",
    ]  # fmt: skip


def test_a_machine_that_does_not_name_its_first_process_is_taken_to_serve(
    machine: Machine,
) -> None:
    places = machine("process_api")
    (places.proc / "1/comm").unlink()
    (sign,) = find_signs(places)
    assert "its first process" in sign


@pytest.mark.parametrize(("said", "consent"), [("1", True), ("0", False), ("", False)])
def test_consent_is_said_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, said: str, consent: bool
) -> None:
    monkeypatch.setenv(CONSENT, said)
    assert has_consent() is consent
    monkeypatch.delenv(CONSENT)
    assert not has_consent()
