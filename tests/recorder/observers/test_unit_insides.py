"""Loops inside units, heard from ends of children that a list tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.unit_insides import UnitInsides
from nodescope.records.event import Event
from nodescope.records.event_details import UnitChildDetails
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.sources.places import Places
from nodescope.sources.processes.exits import TaskExit
from nodescope.sources.systemd.unit_processes import parse_process, parse_service

_AGENT, _SHIM = 100, 200


class Ends:
    """What the kernel would tell, and whether somebody listens."""

    def __init__(self) -> None:
        self.waiting: list[TaskExit] = []
        self._open = False

    def is_heard(self) -> bool:
        return self._open

    def listen(self) -> Ends:
        self.waiting.clear()
        self._open = True
        return self

    def take(self) -> list[TaskExit]:
        taken = list(self.waiting)
        self.waiting.clear()
        return taken

    def close(self) -> None:
        self._open = False


class Node:
    """A node whose processes and clock are ours."""

    def __init__(self, root: Path) -> None:
        self.proc = root / "proc"
        self.ends = Ends()
        self.observer = UnitInsides(Places(root=root), self.ends.listen, lambda: 100.0)
        self.now_s = 1000
        self.add_process(_AGENT, "/system.slice/agent.service")
        self.add_process(_SHIM, "/system.slice/containerd.service")

    def add_process(self, pid: int, cgroup: str, started_ticks: int = 1, parent: int = 1) -> None:
        folder = self.proc / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
        fields = ["S", str(parent), *["0"] * 17, str(started_ticks)]
        (folder / "stat").write_text(f"{pid} (agent) {' '.join(fields)} 0 0")
        (folder / "cmdline").write_bytes(b"agent\0--serve\0")
        (folder / "cgroup").write_text(f"3:memory:/\n1:name=systemd:{cgroup}\n0::/\n")

    def remove_process(self, pid: int) -> None:
        for name in ("stat", "cmdline", "cgroup"):
            (self.proc / str(pid) / name).unlink()

    def listen(self, *ends: TaskExit) -> list[Event]:
        """One listening with these ends in it, and the pause after it."""
        events: list[Event] = []
        while not self.ends.is_heard():
            events += self.look()
        self.ends.waiting += ends
        while self.ends.is_heard():
            events += self.look()
        return events

    def look(self) -> list[Event]:
        self.now_s += 2
        return self.observer.observe(self.now_s * SECOND_NS).events


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def _end(
    parent: int = _AGENT, comm: str = "worker", code: int = 4, lasted_s: float = 0.5
) -> TaskExit:
    return TaskExit(9000, parent, comm, code << 8, int(lasted_s * 1e6))


def test_a_loop_is_told_once_and_then_that_it_goes_on(node: Node) -> None:
    assert node.listen(*[_end()] * 5) == []
    (found,) = node.listen(*[_end()] * 5)
    assert (found.kind, found.subject) == ("unit_hidden_loop", "agent.service")
    assert "worker ended 10 times" in found.message
    assert "exit code 4" in found.message
    assert found.get(UnitChildDetails).main == "agent --serve"
    assert found.get(UnitChildDetails).cgroup == "/system.slice/agent.service"
    assert EVENT_KINDS[found.kind].serious
    (again,) = node.listen(*[_end()] * 5)
    assert again.kind == "unit_child_failing"
    assert not EVENT_KINDS[again.kind].serious


def test_what_was_heard_once_is_listened_for_again_soon(node: Node) -> None:
    def pause() -> int:
        before = node.now_s
        while not node.ends.is_heard():
            node.look()
        return node.now_s - before

    node.listen()
    assert pause() == 100
    node.listen(*[_end()] * 5)
    assert pause() == 14
    node.listen(*[_end()] * 5)  # told of now
    assert pause() == 100


def test_one_burst_of_errors_is_no_loop(node: Node) -> None:
    assert node.listen(*[_end(comm="gcc")] * 50) == []
    for _ in range(12):
        assert node.listen() == []


def test_a_child_that_fails_now_and_then_is_found_in_the_end(node: Node) -> None:
    assert node.listen(_end()) == []
    assert node.listen() == []
    assert node.listen(_end()) == []
    (found,) = node.listen(_end())
    assert found.kind == "unit_hidden_loop"


def test_children_that_take_turns_are_one_loop(node: Node) -> None:
    told = []
    for number in range(8):
        told += node.listen(*[_end(comm="one")] * (4 + number % 2), *[_end(comm="two")] * 4)
    assert [event.kind for event in told].count("unit_hidden_loop") == 1


def test_what_ended_long_ago_is_forgotten_and_told_anew(node: Node) -> None:
    node.listen(*[_end()] * 3)
    assert node.listen(*[_end()] * 3)
    for _ in range(11):
        assert node.listen() == []
    assert node.listen(*[_end()] * 3) == []
    (found,) = node.listen(*[_end()] * 3)
    assert found.kind == "unit_hidden_loop"


def test_who_ends_well_or_is_stopped_or_answers_is_no_loop(node: Node) -> None:
    stopped = TaskExit(9000, _AGENT, "worker", 15, 500_000)
    well = [_end(code=0), _end(comm="grep"), _end(comm="check_disk", code=2), _end(code=143)]
    for _ in range(3):
        assert node.listen(*[*well, stopped, _end(comm="timeout", code=124)] * 5) == []


def test_a_servers_own_fork_may_end_as_it_likes_but_not_crash(node: Node) -> None:
    refused = TaskExit(9000, _AGENT, "agent", 1 << 8, 5_000, execed=False)
    for _ in range(3):
        assert node.listen(*[refused] * 20) == []
    crashed = TaskExit(9000, _AGENT, "agent", 11, 5_000, execed=False)
    node.listen(*[crashed] * 5)
    (found,) = node.listen(*[crashed] * 5)
    assert "signal 11" in found.message


def test_parents_that_end_or_are_young_or_serve_others_do_not_count(node: Node) -> None:
    node.add_process(300, "/system.slice/job.service", started_ticks=1 << 60)
    for _ in range(3):
        assert node.listen(*[_end(300), _end(_SHIM), _end(4242)] * 5) == []
    node.listen(*[_end()] * 5)
    assert node.listen(*[_end()] * 5)
    node.remove_process(_AGENT)
    assert node.listen(*[_end()] * 5) == []


def test_where_the_kernel_does_not_tell_it_is_absent(tmp_path: Path) -> None:
    def refuse() -> Ends:
        raise SourceAbsent("taskstats", "not in the first pid namespace")

    observer = UnitInsides(Places(root=tmp_path), refuse)
    for second in (1, 2):
        with pytest.raises(SourceAbsent):
            observer.observe(second * SECOND_NS)
    observer.close()


_ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("cgroups", "service"),
    [
        ("0::/system.slice/agent.service\n", "agent.service"),
        ("0::/system.slice/agent.service/worker\n", "agent.service"),
        ("5:memory:/x\n1:name=systemd:/guest/system.slice/a.service\n0::/\n", "a.service"),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
        ("0::/init.scope\n", None),
        (f"0::/system.slice/docker-{_ID}.scope/system.slice/cron.service\n", None),
        ("5:memory:/system.slice/agent.service\n0::/\n", None),
        ("", None),
        ("\n:\n0:\n", None),
    ],
)
def test_the_service_of_a_process(cgroups: str, service: str | None) -> None:
    found = parse_service(cgroups.encode())
    assert (None if found is None else found.name) == service


def test_a_process_stays_the_same_while_it_works() -> None:
    stat = "7 (agent) S 1 7 7 0 -1 0 0 0 0 0 {used} 3 0 0 20 0 1 0 500 0 0"
    first, later = (
        parse_process(7, stat.format(used=used).encode(), b"agent", 100) for used in (0, 250)
    )
    assert first is not None
    assert later is not None
    assert (first.cpu_us, later.cpu_us) == (30_000, 2_530_000)
    assert {first: "known"}[later] == "known"


def test_the_service_is_known_by_its_cgroup() -> None:
    found = parse_service(b"0::/guest/system.slice/a.service/below\n")
    assert found is not None
    assert found.cgroup == "/guest/system.slice/a.service"
