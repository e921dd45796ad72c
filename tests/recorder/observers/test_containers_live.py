"""A real dockerd and a real containerd: loops seen, with rate and cgroup parent; pods named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.container_daemons import ContainerHost, container_host
from tests.waiting import wait_for

from nodescope.archive.reader import Archive, Segment
from nodescope.errors import ArchiveError
from nodescope.ingest.observation import Observation
from nodescope.judgement.condition import ConditionOwner
from nodescope.judgement.conditions import find_conditions
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.catalogue import NAMES
from nodescope.recorder.observers.containers import Containers, make
from nodescope.recording.events import read_events
from nodescope.recording.recording import Recording as ArchivedRecording
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import (
    ContainerDetails,
    ContainerExitDetails,
    ContainerLoopDetails,
    ContainerStartDetails,
)
from nodescope.records.node_tables import ContainerRow
from nodescope.sources.containers.runtimes import Runtimes

pytestmark = [
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.root,
    pytest.mark.timeout(1200),  # waits end as soon as they can, however slow the machine is
    pytest.mark.debian("docker.io", "containerd", "busybox-static", "iproute2"),
]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerHost]:
    with container_host(tmp_path_factory.mktemp("containers")) as started:
        yield started


@pytest.fixture(autouse=True)
def _own_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("CONTAINERD_ADDRESS", raising=False)


PATIENCE_S = 300.0


class Watched:
    """The observer, asked until something is so; keeps all it said."""

    def __init__(self, observer: Containers, host: ContainerHost) -> None:
        self._observer = observer
        self._host = host
        self.events: list[Event] = []
        self.rows: list[ContainerRow] = []

    def ask(self) -> Observation:
        observation = self._observer.observe(time.monotonic_ns())
        self.events += observation.events
        self.rows += observation.rows_of(ContainerRow)
        return observation

    def of(self, kind: str, subject: str) -> list[Event]:
        return [each for each in self.events if (each.kind, each.subject) == (kind, subject)]

    def wait_for(self, kind: str, subject: str, count: int = 1) -> list[Event]:
        def enough() -> list[Event]:
            self.ask()
            found = self.of(kind, subject)
            return found if len(found) >= count else []

        return self._host.wait_for(enough, f"{count} {kind} of {subject}", PATIENCE_S)

    def wait_for_row(self, identifier: str) -> None:
        def there() -> bool:
            self.ask()
            return any(row.id == identifier for row in self.rows)

        self._host.wait_for(there, f"a row of {identifier}", PATIENCE_S)


@pytest.fixture
def watched(host: ContainerHost, tmp_path: Path) -> Iterator[Watched]:
    observer = make(Setting(host.places, tmp_path))
    watching = Watched(observer, host)
    watching.ask()
    yield watching
    observer.close()


@contextmanager
def running(host: ContainerHost, name: str, command: list[str], **more: str) -> Iterator[str]:
    identifier = host.docker_run(name, command, **more)
    try:
        yield identifier
    finally:
        host.docker_remove(identifier)


def run_and_remove(host: ContainerHost, name: str, code: int) -> str:
    """What a supervisor does that makes its container anew."""
    with running(host, name, ["sh", "-c", f"exit {code}"]) as identifier:
        ended = host.docker("POST", f"/containers/{identifier}/wait")
        assert ended["StatusCode"] == code
    return identifier


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def test_new_ids_under_one_name(host: ContainerHost, watched: Watched) -> None:
    name = unique("agent")
    with running(host, unique("steady"), ["sleep", "100000"]) as steady:
        watched.wait_for_row(steady)
        ids = [run_and_remove(host, name, 7) for _ in range(4)]
        (loop,) = watched.wait_for("container_loop", name)
        exits = watched.wait_for("container_exit", name, 4)
    assert [each.get(ContainerDetails).id for each in exits] == ids
    assert {each.get(ContainerExitDetails).exit_status for each in exits} == {7}
    assert all((each.get(ContainerExitDetails).ran_s or -1) >= 0 for each in exits)
    assert loop.get(ContainerLoopDetails).ids == loop.get(ContainerLoopDetails).starts == 3
    assert (loop.get(ContainerLoopDetails).per_minute or 0) > 0
    assert loop.get(ContainerLoopDetails).cgroup_parent == f"{host.cgroup}/docker"
    starts = watched.of("container_started", name)
    assert [each.get(ContainerStartDetails).replaces for each in starts] == [None, *ids[:-1]]
    times = [each.time_ns for each in watched.events if each.subject == name]
    assert times == sorted(times)
    gone = [row for row in watched.rows if row.name == name and row.state == "removed"]
    assert {row.id for row in gone if row.exit_status == 7} == set(ids)
    assert not [each for each in watched.events if each.subject.startswith("steady")][1:]


def test_one_that_docker_restarts(host: ContainerHost, watched: Watched) -> None:
    name = unique("restarted")
    command = ["sh", "-c", "exit 3"]
    with running(host, name, command, restart="always", parent="/batch") as identifier:
        restarts = watched.wait_for("container_restart", name, 3)
        (loop,) = watched.wait_for("container_loop", name)
    assert {each.get(ContainerDetails).id for each in restarts} == {identifier}
    assert loop.get(ContainerLoopDetails).ids == 1
    assert loop.get(ContainerLoopDetails).exit_statuses == (3,)
    assert (loop.get(ContainerLoopDetails).per_minute or 0) > 0
    assert (loop.get(ContainerLoopDetails).cgroup_parent or "").endswith("/batch")
    counts = [row.restarts for row in watched.rows if row.id == identifier]
    assert counts == sorted(counts, key=lambda count: int(str(count)))


def test_pods_of_containerd(host: ContainerHost, tmp_path: Path) -> None:
    uid = str(uuid.uuid4())
    log = host.places.inside(f"/var/log/pods/shop_web-0_{uid}/app/0.log")
    log.parent.mkdir(parents=True)
    log.write_text("2026-11-16T12:13:09.358193749Z stdout F hello\n")
    parent = f"/kubepods/burstable/pod{uid}"

    def start(identifier: str, *command: str) -> None:
        cgroup = f"{parent}/{identifier}"
        arguments = ("run", "--detach", "--rootfs", "--cgroup", cgroup, "/opt/rootfs", identifier)
        host.ctr(*arguments, *command)

    observer = make(Setting(host.places, tmp_path))
    watched = Watched(observer, host)
    watched.ask()
    try:
        lives, *ends = [uuid.uuid4().hex * 2 for _ in range(4)]
        start(lives, "/bin/sleep", "100000")
        subject = "shop/web-0/app"
        started = watched.wait_for("container_started", subject)
        assert started[0].get(ContainerDetails).id == lives
        assert started[0].get(ContainerDetails).cgroup == f"{host.cgroup}{parent}/{lives}"
        for identifier in ends:
            start(identifier, "/bin/sh", "-c", "exit 5")
        exits = watched.wait_for("container_exit", subject, 3)
        assert [each.get(ContainerDetails).id for each in exits] == ends
        assert {each.get(ContainerExitDetails).exit_status for each in exits} == {5}
        (loop,) = watched.wait_for("container_loop", subject)
        assert loop.get(ContainerLoopDetails).cgroup_parent == f"{host.cgroup}{parent}"
        assert loop.get(ContainerLoopDetails).runtime == "containerd"
        host.ctr("task", "kill", "--signal", "SIGKILL", lives)
        last = watched.wait_for("container_exit", subject, 4)[-1]
        end = last.get(ContainerExitDetails)
        assert (end.id, end.exit_status) == (lives, 137)
        row = next(row for row in watched.rows if row.id == lives)
        assert (row.namespace, row.pod, row.name) == ("shop", "web-0", "app")
    finally:
        observer.close()


def test_a_container_of_a_pod_that_is_killed_again_and_again_loops(
    host: ContainerHost, tmp_path: Path
) -> None:
    """As at a memory limit: signal 9 each time, and a new id for each attempt."""
    uid = str(uuid.uuid4())
    logs = host.places.inside(f"/var/log/pods/shop_greedy-0_{uid}/app")
    logs.mkdir(parents=True)
    observer = make(Setting(host.places, tmp_path))
    watched = Watched(observer, host)
    watched.ask()
    subject = "shop/greedy-0/app"
    try:
        for attempt in range(3):
            (logs / f"{attempt}.log").write_text("")
            identifier = uuid.uuid4().hex * 2
            cgroup = f"/kubepods/burstable/pod{uid}/{identifier}"
            where = ("--rootfs", "--cgroup", cgroup, "/opt/rootfs", identifier)
            host.ctr("run", "--detach", *where, "/bin/sleep", "100000")
            watched.wait_for("container_started", subject, attempt + 1)
            host.ctr("task", "kill", "--signal", "SIGKILL", identifier)
            watched.wait_for("container_exit", subject, attempt + 1)
        (loop,) = watched.wait_for("container_loop", subject)
    finally:
        observer.close()
    assert loop.get(ContainerLoopDetails).exit_statuses == (137,)
    assert (loop.get(ContainerLoopDetails).failures or 0) >= 2


def test_a_daemon_that_hangs_does_not_hang_the_observer(
    host: ContainerHost, tmp_path: Path
) -> None:
    (dockerd,) = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and _is_dockerd_of(host, entry)
    ]
    name = unique("kept")
    with running(host, name, ["sleep", "100000"]) as identifier:
        os.kill(dockerd, signal.SIGSTOP)
        try:
            runtimes = Runtimes(host.places)
            polled = runtimes.poll(time.time_ns())
            assert runtimes.containers["docker", identifier].name == name  # by its files
            assert "no answer within" in str(polled.failed["docker"])
            runtimes.close()
        finally:
            os.kill(dockerd, signal.SIGCONT)


def _is_dockerd_of(host: ContainerHost, process: Path) -> bool:
    try:
        comm = (process / "comm").read_text().strip()
        ours = (process / "root").stat() == Path(f"/proc/{host.pid}/root").stat()
    except OSError:
        return False  # ended while we looked
    return comm == "dockerd" and ours


NODESCOPE = str(Path(sys.executable).with_name("nodescope"))


@dataclass(frozen=True)
class Recording:
    """A recorder beside the daemons; its archive as seen from here."""

    archive: Path
    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        wait_for(condition, what, PATIENCE_S, process=self.process, log=self.log)


@contextmanager
def recording(host: ContainerHost, log: Path) -> Iterator[Recording]:
    """Record, and stop as a service is stopped."""
    folder = f"/tmp/{unique('recording')}"
    without = [f"--without={name}" for name in NAMES if name != "containers"]
    command = [NODESCOPE, "record", f"--archive={folder}", "--flush=1s", "--quiet", *without]
    # nsenter does not pass signals on: the recorder's own pid is needed
    own_pid = host.places.inside(f"{folder}.pid")
    script = 'cd / && echo $$ > "$1.pid" && shift && exec "$@"'
    with log.open("wb") as errors:
        recorder = subprocess.Popen(
            ["nsenter", "-t", str(host.pid), "-a", "sh", "-c", script, "sh", folder, *command],
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        yield Recording(host.places.inside(folder), recorder, log)
        host.run("kill", "-TERM", own_pid.read_text().strip())
        assert recorder.wait(240) == 0, log.read_text()
    finally:
        if recorder.poll() is None:
            host.run("kill", "-KILL", own_pid.read_text().strip(), check=False)
            recorder.wait(240)


def audit(host: ContainerHost, *options: str) -> dict[str, Any]:
    """What the command says of each container, from outside."""
    command = [NODESCOPE, "audit", f"--root={host.places.root}", "--json", "--watch=1s", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    return {each["name"]: each for each in found if each["kind"] == "container"}


def test_the_recorder_and_the_audit(host: ContainerHost, tmp_path: Path) -> None:
    """Both where a node has them: what is recorded, and what is still remembered."""
    looping, steady = unique("looping"), unique("healthy")
    with (
        running(host, steady, ["sleep", "100000"]),
        recording(host, tmp_path / "log") as recorder,
    ):
        archive = recorder.archive
        recorder.wait_for(lambda: steady in _names(archive), "the recorder follows docker")
        for _ in range(4):
            run_and_remove(host, looping, 9)
        recorder.wait_for(
            lambda: _subjects(archive, "container_exit").count(looping) == 4, "every end"
        )
        (loop,) = _recorded(archive, "container_loop")
        assert loop.subject == looping
        assert loop.get(ContainerLoopDetails).cgroup_parent == "/docker"
        verdicts = audit(host)
        assert verdicts[looping]["verdict"] == "looping"
        assert verdicts[looping]["evidence"]["ids"] == 4
        assert verdicts[looping]["evidence"]["exit_statuses"] == [9]
        assert verdicts[looping]["evidence"]["cgroup_parent"] == f"{host.cgroup}/docker"
        assert steady not in verdicts
        with_recording = audit(host, f"--archive={archive}")  # tells of the same: counted once
        assert with_recording[looping]["evidence"]["ids"] == 4
        assert with_recording[looping]["evidence"]["starts"] == 4
        kept = ArchivedRecording.open(archive)
        conditions = find_conditions(kept, Window(0, kept.extent.to_ns))
        assert steady not in {each.owner.name for each in conditions}
        owner = ConditionOwner("container", looping)
        (lasting,) = [each for each in conditions if each.owner == owner]
        assert lasting.kind == "container_loop"
        assert "exit code 9" in lasting.statement


def _recorded(archive: Path, kind: str) -> list[Event]:
    events = read_events(_segments(archive), Window(0, 1 << 62))
    return [event for event in events if event.kind == kind]


def _subjects(archive: Path, kind: str) -> list[str]:
    return [event.subject for event in _recorded(archive, kind)]


def _names(archive: Path) -> set[str]:
    columns = [
        segment.read("containers", ["name"]).column("name") for segment in _segments(archive)
    ]
    return {name for column in columns for name in column.to_pylist()}


def _segments(archive: Path) -> list[Segment]:
    try:
        return Archive.open(archive).segments()
    except ArchiveError:
        return []  # being made
