"""Podman's recorded files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources.containers.daemons import RECORDED

from nodescope.errors import MalformedSource, NodescopeError, SourceAbsent
from nodescope.sources.containers.container import HappeningKind
from nodescope.sources.containers.podman import PodmanFiles, parse_containers, parse_event
from nodescope.sources.places import Places

FOLDER = RECORDED / "podman-4.3"
LIST = (FOLDER / "containers.json").read_bytes()
LOG = (FOLDER / "events.log").read_bytes()
KEEP_ID, FAIL_ID = (each["id"] for each in json.loads(LIST))
NOW = 1794833000_000000000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    storage = tmp_path / "var/lib/containers/storage/vfs-containers"
    (storage / KEEP_ID / "userdata").mkdir(parents=True)
    (storage / "containers.json").write_bytes(LIST)
    shutil.copy(FOLDER / "config-pkeep.json", storage / KEEP_ID / "userdata/config.json")
    run = tmp_path / f"run/containers/storage/vfs-containers/{KEEP_ID}/userdata"
    run.mkdir(parents=True)
    (run / "pidfile").write_text("77")
    process = tmp_path / "proc/77"
    process.mkdir(parents=True)
    (process / "stat").write_text("77 (sleep) S " + " ".join(["0"] * 18) + " 100 0 0")
    (process / "cgroup").write_text(f"0::/guest/libpod_parent/libpod-{KEEP_ID}\n")
    return tmp_path


def log(root: Path) -> Path:
    path = root / "run/libpod/events/events.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def event(status: str, identifier: str, second: int, **more: object) -> bytes:
    said = {"ID": identifier, "Name": "job", "Status": status, "Type": "container"}
    said["Time"] = f"2026-11-16T12:30:{second:02}.5Z"
    return json.dumps({**said, **more}).encode() + b"\n"


def test_recorded_files() -> None:
    assert [(each.name, each.image) for each in parse_containers(LIST, "x")] == [
        ("pkeep", "localhost/looper:latest"),
        ("pfail", "localhost/looper:latest"),
    ]
    events = [parse_event(line, "x") for line in LOG.splitlines()]
    assert [(e.kind, e.name, e.exit_status) for e in events if e][-2:] == [
        (HappeningKind.EXITED, "ploop", 4),
        (HappeningKind.REMOVED, "ploop", None),
    ]


def test_what_runs_and_where(root: Path) -> None:
    podman = PodmanFiles(Places(root=root))
    assert podman.poll(NOW) == []
    keep = podman.containers[KEEP_ID]
    assert (keep.name, keep.state, keep.pid) == ("pkeep", "running", 77)
    assert keep.cgroup_parent == "/guest/libpod_parent"
    assert podman.containers[FAIL_ID].state == "created"
    first = podman.containers[KEEP_ID]
    podman.poll(NOW)
    assert podman.containers[KEEP_ID] is first


def test_an_end_without_a_log_has_no_code(root: Path) -> None:
    podman = PodmanFiles(Places(root=root))
    podman.poll(NOW)
    shutil.rmtree(root / "proc/77")
    (end,) = podman.poll(NOW)
    assert (end.kind, end.container.name, end.container.exit_status) == (
        HappeningKind.EXITED,
        "pkeep",
        None,
    )


def test_a_pid_used_again_is_not_the_containers(root: Path) -> None:
    pidfile = root / f"run/containers/storage/vfs-containers/{KEEP_ID}/userdata/pidfile"
    os.utime(pidfile, (1, 1))
    podman = PodmanFiles(Places(root=root))
    podman.poll(NOW)
    assert podman.containers[KEEP_ID].pid is None


def test_the_log_of_events_is_followed(root: Path) -> None:
    log(root).write_bytes(LOG)
    podman = PodmanFiles(Places(root=root))
    assert podman.poll(NOW) == []
    with log(root).open("ab") as file:
        file.write(event("start", "a1", 1) + event("died", "a1", 3, ContainerExitCode=6))
        file.write(event("remove", "a1", 4)[:-10])
    started, ended = podman.poll(NOW)
    assert (started.kind, started.container.name) == (HappeningKind.STARTED, "job")
    assert (ended.container.exit_status, ended.ran_ns) == (6, 2_000_000_000)
    log(root).unlink()
    log(root).write_bytes(event("remove", "a1", 4))
    assert [each.kind for each in podman.poll(NOW)] == [HappeningKind.REMOVED]


def test_the_past_by_the_log(root: Path) -> None:
    log(root).write_bytes(LOG)
    podman = PodmanFiles(Places(root=root))
    podman.poll(NOW)
    ends = [each for each in podman.read_recent(NOW, 0) if each.kind is HappeningKind.EXITED]
    assert {each.container.exit_status for each in ends} == {4}


def test_lists_that_are_none(root: Path) -> None:
    storage = root / "var/lib/containers/storage/vfs-containers/containers.json"
    for content in (b"{}", b"[", b"null"):
        storage.write_bytes(content)
        with pytest.raises(MalformedSource):
            PodmanFiles(Places(root=root)).poll(NOW)
    storage.unlink()
    with pytest.raises(SourceAbsent):
        PodmanFiles(Places(root=root)).poll(NOW)


def test_an_id_cannot_lead_elsewhere() -> None:
    listed = [{"id": "../../../etc"}, {"id": 5}, None, {"id": "ok", "names": {}, "metadata": "{"}]
    assert [each.id for each in parse_containers(json.dumps(listed).encode(), "x")] == ["ok"]


@given(st.binary(max_size=100))
def test_any_line_is_an_event_or_an_error_of_ours(line: bytes) -> None:
    try:
        parse_event(line, "x")
    except NodescopeError:
        pass  # what was to be shown
