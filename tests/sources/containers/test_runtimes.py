"""All runtimes of a node together."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
from tests.sources.containers.daemons import FakeDocker, listening
from tests.sources.containers.test_docker import (
    AGAIN,
    AGAIN_ID,
    INFO,
    KEEP,
    KEEP_ID,
    LIST,
    docker_root,
    event,
)
from tests.sources.containers.test_pods import UID, write_log
from tests.waiting import wait_for

from nodescope.errors import SourceAbsent
from nodescope.sources.containers.container import Container
from nodescope.sources.containers.runtimes import (
    Runtimes,
    find_containerd_socket,
    find_docker_socket,
    pod_cgroup,
)
from nodescope.sources.places import Places

NOW = 1794832000_000000000


class Clock:
    """A clock that a test moves."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("CONTAINERD_ADDRESS", raising=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def hang(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def test_a_node_without_any(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(SourceAbsent, match="no docker"):
        Runtimes(Places(root=tmp_path), clock).poll(NOW)


def test_sockets_are_found_where_the_root_has_them(
    tmp_path: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(root=tmp_path)
    with pytest.raises(SourceAbsent):
        find_docker_socket(places)
    with listening(run / "docker.sock", hang):
        assert find_docker_socket(places) == run / "docker.sock"
        (run / "docker.sock").rename(run / "moved.sock")
        # /var/run of another root is a link into our own
        (tmp_path / "var").mkdir()
        (tmp_path / "var/run").symlink_to(run)
        (run / "moved.sock").rename(tmp_path / "run/docker.sock.1")
        with pytest.raises(SourceAbsent):
            find_docker_socket(places)
    monkeypatch.setenv("DOCKER_HOST", "unix:///some/where.sock")
    assert find_docker_socket(places) == Path("/some/where.sock")
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.1:2375")
    with pytest.raises(SourceAbsent):
        find_docker_socket(places)
    monkeypatch.setenv("CONTAINERD_ADDRESS", "/run/other.sock")
    assert find_containerd_socket(places) == Path("/run/other.sock")


def test_docker_over_its_socket(tmp_path: Path, run: Path, clock: Clock) -> None:
    fake = FakeDocker({
        "/info": INFO,
        "/containers/json": LIST,
        f"/containers/{AGAIN_ID}/json": AGAIN,
        f"/containers/{KEEP_ID}/json": KEEP,
    })  # fmt: skip
    with listening(run / "docker.sock", fake.talk):
        runtimes = Runtimes(Places(root=tmp_path), clock)
        assert runtimes.poll(NOW).happenings == []
        assert set(runtimes.containers) == {("docker", KEEP_ID), ("docker", AGAIN_ID)}
        before = dict(runtimes.containers)
        fake.say(event("start", "a1", "job", 5))
        (started,) = wait_for(lambda: runtimes.poll(NOW).happenings, "a start")
        assert started.container.name == "job"
        assert all(runtimes.containers[key] is each for key, each in before.items())
        runtimes.close()


def test_a_daemon_that_hangs_is_replaced_by_its_files(
    tmp_path: Path, run: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodescope.sources.containers.docker.TIMEOUT_S", 0.2)
    docker_root(tmp_path)
    with listening(run / "docker.sock", hang):
        runtimes = Runtimes(Places(root=tmp_path), clock)
        polled = runtimes.poll(NOW)
        assert "no answer within" in str(polled.failed["docker"])
        assert set(runtimes.containers) == {("docker", KEEP_ID), ("docker", AGAIN_ID)}
        shutil.rmtree(tmp_path / "var/lib/docker/containers" / KEEP_ID)
        clock.now_s += 11
        assert runtimes.poll(NOW).happenings == []  # the daemon will tell, when it does again
        assert set(runtimes.containers) == {("docker", AGAIN_ID)}
        runtimes.close()


def test_what_two_ways_tell_is_told_once(tmp_path: Path, run: Path, clock: Clock) -> None:
    """The files had it while the daemon was away; then it tells of it again."""
    docker_root(tmp_path)
    runtimes = Runtimes(Places(root=tmp_path), clock)
    runtimes.poll(NOW)
    config = tmp_path / "var/lib/docker/containers" / KEEP_ID / "config.v2.json"
    fields = json.loads(config.read_bytes())
    fields["State"] |= {"StartedAt": "2026-11-16T12:30:00.5Z", "Pid": 99}
    config.write_text(json.dumps(fields))
    clock.now_s += 11
    kinds = [each.kind for each in runtimes.poll(NOW).happenings]
    assert kinds == ["exited", "started"]
    fake = FakeDocker({"/info": INFO, "/containers/json": b"[]"})
    with listening(run / "docker.sock", fake.talk):
        clock.now_s += 61
        runtimes.poll(NOW)
        fake.say(
            event("start", KEEP_ID, "keep", 1794832200_500400000),
            event("start", "a1", "job", 1794832201_000000000),
        )
        (started,) = wait_for(lambda: runtimes.poll(NOW).happenings, "a start")
        assert started.container.name == "job"
        runtimes.close()


def test_one_that_fails_does_not_hide_the_others(
    tmp_path: Path, run: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodescope.sources.containers.containerd.TIMEOUT_S", 0.2)
    docker_root(tmp_path)
    (run / "containerd").mkdir()
    with listening(run / "containerd/containerd.sock", hang):
        runtimes = Runtimes(Places(root=tmp_path), clock)
        polled = runtimes.poll(NOW)
        assert "no answer within" in str(polled.failed["containerd"])
        assert len(runtimes.containers) == 2
        clock.now_s += 1  # it is not waited for again at once, and still missing
        assert "containerd" in runtimes.poll(NOW).failed
        runtimes.close()


def test_pods_where_no_runtime_tells(tmp_path: Path, clock: Clock) -> None:
    write_log(tmp_path, f"shop_web-0_{UID}", "app", 2)
    runtimes = Runtimes(Places(root=tmp_path), clock)
    assert runtimes.poll(NOW).happenings == []
    ((key, container),) = runtimes.containers.items()
    assert key == ("kubelet", f"{UID}/app")
    assert (container.subject, container.restarts) == ("shop/web-0/app", 2)
    write_log(tmp_path, f"shop_web-0_{UID}", "app", 3)
    clock.now_s += 60
    (started,) = runtimes.poll(NOW).happenings
    assert (started.kind, started.container.restarts) == ("started", 3)


@pytest.mark.parametrize(
    ("cgroup", "is_pods"),
    [
        ("/kubepods/burstable/podx/abc", True),
        ("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podx.slice/y.scope", True),
        ("/docker/abc", False),
        (None, False),
    ],
)
def test_a_cgroup_tells_whether_a_container_is_a_pods(cgroup: str | None, is_pods: bool) -> None:
    assert pod_cgroup(Container("containerd", "abc", cgroup=cgroup)) is is_pods


def test_what_comes_later_is_found_later(tmp_path: Path, clock: Clock) -> None:
    write_log(tmp_path, f"shop_web-0_{UID}", "app", 2)
    runtimes = Runtimes(Places(root=tmp_path), clock)
    runtimes.poll(NOW)
    docker_root(tmp_path)
    assert len(runtimes.containers) == 1
    clock.now_s += 61
    runtimes.poll(NOW)
    assert ("docker", KEEP_ID) in runtimes.containers
