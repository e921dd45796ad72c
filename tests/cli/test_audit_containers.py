"""What `nodescope audit` says of containers, from files and from a recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sources.containers.test_docker import docker_root

from nodescope.archive.schema import ColumnData
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.quantities import SECOND_NS

Nodescope = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("CONTAINERD_ADDRESS", raising=False)


def record_loop(path: Path, name: str, ends: int) -> None:
    """A recording of a container that was made anew and failed, each time."""
    clock = SystemClock()
    now = clock.monotonic_ns()
    rows = []
    for number in range(ends):
        details: dict[str, Any] = {"runtime": "containerd", "id": f"id{number}"}
        details["cgroup_parent"] = "/kubepods/pod1"
        started = now - (ends - number) * 5 * SECOND_NS
        rows.append((started, "container_started", details))
        rows.append((started + SECOND_NS, "container_exit", {**details, "exit_status": 4}))
    node = {"name": "n", "boot_id": "b"}
    with ArchiveWriter.open(path, node=node, clock=clock, tick_ns=1000) as writer:
        columns: ColumnData = {
            "time_ns": [row[0] for row in rows],
            "kind": [row[1] for row in rows],
            "subject": [name] * len(rows),
            "message": [""] * len(rows),
            "details": [json.dumps(row[2]) for row in rows],
        }
        writer.append("events", columns)


def containers(result: Any) -> dict[str, Any]:
    found = json.loads(result.out)
    return {each["name"]: each for each in found if each["kind"] == "container"}


def test_a_mounted_system_by_its_files(nodescope: Nodescope, tmp_path: Path) -> None:
    docker_root(tmp_path)
    result = nodescope("audit", "--root", tmp_path, "--json", "--watch", "1ms")
    assert result.code == 1
    verdicts = containers(result)
    assert set(verdicts) == {"again"}
    assert verdicts["again"]["verdict"] == "looping"
    assert verdicts["again"]["evidence"]["exit_status"] == 3


def test_what_a_recording_remembers(nodescope: Nodescope, tmp_path: Path) -> None:
    root, archive = tmp_path / "root", tmp_path / "archive"
    docker_root(root)
    record_loop(archive, "shop/web-0/app", 4)
    result = nodescope("audit", "--root", root, "--archive", archive, "--json", "--watch", "1ms")
    verdicts = containers(result)
    assert set(verdicts) == {"again", "shop/web-0/app"}
    evidence = verdicts["shop/web-0/app"]["evidence"]
    assert (evidence["starts"], evidence["ids"], evidence["exit_statuses"]) == (4, 4, [4])
    assert evidence["cgroup_parent"] == "/kubepods/pod1"
    assert evidence["per_minute"] == 12.0


def test_a_recording_that_is_named_must_be_one(nodescope: Nodescope, tmp_path: Path) -> None:
    docker_root(tmp_path)
    result = nodescope(
        "audit", "--root", tmp_path, "--archive", tmp_path / "none", "--watch", "1ms"
    )
    assert result.code == 2
    assert str(tmp_path / "none") in result.err
