"""containerd's recorded answers, over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.containers.daemons import RECORDED, FakeContainerd, listening
from tests.waiting import wait_for

from nodescope.errors import NodescopeError, SourceError
from nodescope.sources.containers import containerd_messages as messages
from nodescope.sources.containers.container import ContainerHappening
from nodescope.sources.containers.containerd import Containerd
from nodescope.sources.containers.cri_files import CriFiles, parse_status
from nodescope.sources.containers.oci import parse_spec
from nodescope.sources.places import Places

FOLDER = RECORDED / "containerd-1.6"
EVENTS = [bytes.fromhex(line) for line in (FOLDER / "events.txt").read_text().split()]
NOW = 1794832000_000000000
HERE = Path("x")


def recorded(name: str) -> bytes:
    return (FOLDER / f"{name}.bin").read_bytes()


@pytest.fixture
def fake() -> FakeContainerd:
    return FakeContainerd(
        {
            messages.NAMESPACES: recorded("namespaces"),
            messages.CONTAINERS: recorded("containers"),
            messages.TASKS: recorded("tasks"),
        }
    )


@pytest.fixture
def containerd(tmp_path: Path, fake: FakeContainerd) -> Iterator[Containerd]:
    with listening(tmp_path / "s", fake.talk):
        followed = Containerd(tmp_path / "s", tmp_path / "proc")
        yield followed
        followed.close()


def brief(happenings: list[ContainerHappening]) -> list[tuple[str, str | None, int | None]]:
    return [(h.kind.value, h.container.name, h.container.exit_status) for h in happenings]


def poll_for(containerd: Containerd, count: int) -> list[ContainerHappening]:
    found: list[ContainerHappening] = []

    def enough() -> bool:
        found.extend(containerd.poll(NOW))
        return len(found) >= count

    wait_for(enough, f"{count} happenings")
    return found


def test_recorded_messages() -> None:
    assert set(messages.parse_namespaces(recorded("namespaces"), HERE)) == {"k8s.io", "moby"}
    described = {
        each.id: each for each in messages.parse_containers(recorded("containers"), HERE, 9)
    }
    assert described["ccc"].identity.cgroup == "/kubepods/burstable/podaaa/ccc"
    assert described["ccc"].identity.pod == "web-0"
    assert messages.parse_container(recorded("container"), HERE) == described["ccc"]
    tasks = messages.parse_tasks(recorded("tasks"), HERE, 9)
    assert tasks["ccc"].state == "running"
    assert (tasks["ccc"].pid or 0) > 1


def test_recorded_events() -> None:
    parsed = [messages.parse_event(each, HERE) for each in EVENTS]
    assert [each.topic for each in parsed if each] == [
        "/containers/create",
        "/tasks/start",
        "/tasks/exit",
        "/containers/delete",
    ]
    assert [each.exit_status for each in parsed if each] == [None, None, 5, None]


def test_the_first_look(containerd: Containerd) -> None:
    assert containerd.poll(NOW) == []
    ccc = containerd.containers["ccc"]
    assert (ccc.state, ccc.pod, ccc.cgroup_parent) == (
        "running",
        "web-0",
        "/kubepods/burstable/podaaa",
    )
    assert containerd.containers["ddd"].state == "created"


def test_events_become_happenings(containerd: Containerd, fake: FakeContainerd) -> None:
    containerd.poll(NOW)
    fake.answers[messages.CONTAINER] = recorded("container").replace(b"ccc", b"eee")
    fake.say(*EVENTS)
    found = poll_for(containerd, 3)
    assert brief(found) == [("started", "eee", None), ("exited", "eee", 5), ("removed", "eee", 5)]
    assert found[1].ran_ns is not None
    assert 0 < found[1].ran_ns < 1_000_000_000
    assert found[0].container.cgroup == "/kubepods/burstable/podaaa/eee"
    assert "eee" not in containerd.containers


def test_events_of_containers_that_are_gone(containerd: Containerd, fake: FakeContainerd) -> None:
    containerd.poll(NOW)
    fake.say(*EVENTS)
    found = poll_for(containerd, 3)
    assert brief(found) == [("started", "eee", None), ("exited", "eee", 5), ("removed", "eee", 5)]


def test_a_daemon_that_refuses(containerd: Containerd, fake: FakeContainerd) -> None:
    fake.answers.clear()
    with pytest.raises(SourceError, match="refused"):
        containerd.poll(NOW)


@pytest.mark.parametrize("method", [messages.NAMESPACES, messages.CONTAINERS, messages.TASKS])
def test_answers_cut_short(containerd: Containerd, fake: FakeContainerd, method: str) -> None:
    fake.answers[method] = fake.answers[method][:-3]
    with pytest.raises(SourceError, match="not a message"):
        containerd.poll(NOW)


@given(st.sampled_from(["namespaces", "containers", "tasks"]), st.data())
def test_damaged_answers_give_errors_of_ours(name: str, data: st.DataObject) -> None:
    content = bytearray(recorded(name))
    for _ in range(3):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        messages.parse_namespaces(bytes(content), HERE)
        messages.parse_containers(bytes(content), HERE, 10)
        messages.parse_tasks(bytes(content), HERE, 10)
        messages.parse_event(bytes(content), HERE)
    except NodescopeError:
        pass  # what was to be shown


SPEC = b"""{"annotations": {"io.kubernetes.cri.container-type": "container",
 "io.kubernetes.cri.container-name": "app", "io.kubernetes.cri.sandbox-name": "web-0",
 "io.kubernetes.cri.sandbox-namespace": "shop", "io.kubernetes.cri.image-name": "shop/web:1"},
 "linux": {"cgroupsPath": "kubepods-pod1.slice:cri-containerd:abc"}}"""
STATUS = b"""{"Version":"v1","Pid":77,"CreatedAt":1794831000000000000,
 "StartedAt":1794831001000000000,"FinishedAt":0,"ExitCode":0,"Reason":"","Message":""}"""
ENDED = b"""{"Version":"v1","Pid":0,"CreatedAt":1794831000000000000,
 "StartedAt":1794831001000000000,"FinishedAt":1794831009000000000,"ExitCode":137,
 "Reason":"OOMKilled"}"""


def test_identity_by_an_oci_spec() -> None:
    said = parse_spec(SPEC, "x")
    assert (said.name, said.pod, said.namespace, said.image) == (
        "app",
        "web-0",
        "shop",
        "shop/web:1",
    )
    assert said.cgroup == "/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope"


def test_a_status_of_the_cri_plugin() -> None:
    assert parse_status(STATUS, "abc", "x").state == "running"
    ended = parse_status(ENDED, "abc", "x")
    assert (ended.state, ended.exit_status, ended.pid) == ("exited", 137, None)
    assert parse_status(b"{}", "abc", "x").state == "created"


def test_containers_by_the_files_of_the_cri_plugin(tmp_path: Path) -> None:
    status = tmp_path / "var/lib/containerd/io.containerd.grpc.v1.cri/containers/abc/status"
    bundle = tmp_path / "run/containerd/io.containerd.runtime.v2.task/k8s.io/abc/config.json"
    for path, content in ((status, STATUS), (bundle, SPEC)):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    files = CriFiles(Places(root=tmp_path))
    assert files.read()["abc"].subject == "shop/web-0/app"
    bundle.unlink()
    status.write_bytes(ENDED)
    ended = files.read()["abc"]  # its bundle is gone, its name is remembered
    assert (ended.subject, ended.exit_status) == ("shop/web-0/app", 137)
    assert ended.cgroup_parent == "/kubepods.slice/kubepods-pod1.slice"
    status.write_bytes(b"{")
    assert files.read() == {}
