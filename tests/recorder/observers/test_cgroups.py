from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests import cgroup_nodes
from tests.waiting import wait_for

from nodescope.errors import SourceAbsent
from nodescope.recorder.observers import cgroups
from nodescope.recorder.observers.cgroups import CgroupsObserver
from nodescope.records.node import CGROUPS, PRESSURE
from nodescope.sources.cgroup_tree import read_hierarchies
from nodescope.sources.places import Places

A = "/kubepods/burstable/pod1/a"
B = "/kubepods/besteffort/pod2/b"


class Rounds:
    """An observer asked again and again, and its answers by cgroup."""

    def __init__(self, root: Path) -> None:
        self.observer = CgroupsObserver(Places(root))
        self.time_ns = 0
        self.pressure: list[Any] = []

    def next(self) -> dict[str, Any]:
        self.time_ns += 10_000_000_000
        said = self.observer.observe(self.time_ns)
        self.pressure = said.rows.get("pressure", [])
        rows = said.rows.get("cgroups", [])
        names = {column.name for column in CGROUPS.columns}
        assert all(set(row) <= names and row["time_ns"] == self.time_ns for row in rows)
        return {row["cgroup"]: row for row in rows}


def _use_cpu(root: Path, path: str, usage_ns: int) -> None:
    """CPU time counts for a cgroup and all above it."""
    for each in cgroup_nodes._lineage(path):
        folder = root / "sys/fs/cgroup/cpuacct" / each.lstrip("/")
        before = int((folder / "cpuacct.usage").read_text())
        (folder / "cpuacct.usage").write_text(f"{before + usage_ns}\n")


def _memory(root: Path, path: str, value: int) -> None:
    (root / "sys/fs/cgroup/memory" / path.lstrip("/") / "memory.usage_in_bytes").write_text(
        f"{value}\n"
    )


def _remove(root: Path, path: str) -> None:
    for controller in cgroup_nodes.V1_FILES:
        folder = root / "sys/fs/cgroup" / controller / path.lstrip("/")
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_all_are_told_once_then_those_that_ran(tmp_path: Path) -> None:
    root = cgroup_nodes.hybrid(tmp_path, A, B)
    rounds = Rounds(root)
    first = rounds.next()
    assert {"/", "/kubepods", A, B} <= set(first)
    assert first[A]["memory_bytes"] == 20_877_312
    assert rounds.next() == {}
    _use_cpu(root, A, 5_000_000)
    _memory(root, A, 4096)
    _memory(root, B, 4096)  # it did not run: noticed when it is its turn
    second = rounds.next()
    assert second[A]["usage_us"] == first[A]["usage_us"] + 5_000
    assert second[A]["memory_bytes"] == 4096
    assert B not in second


def test_what_did_not_run_has_its_turn(tmp_path: Path) -> None:
    root = cgroup_nodes.hybrid(tmp_path, A, B)
    rounds = Rounds(root)
    rounds.next()
    _memory(root, B, 4096)
    told = [rounds.next() for _ in range(cgroups._TURNS)]
    assert [each[B]["memory_bytes"] for each in told if B in each] == [4096]


def test_each_segment_is_told_whole(tmp_path: Path) -> None:
    rounds = Rounds(cgroup_nodes.hybrid(tmp_path, A, B))
    first = rounds.next()
    rounds.observer.begin_segment()
    assert set(rounds.next()) == set(first)


def test_new_ones_are_found_where_something_runs(tmp_path: Path) -> None:
    root = cgroup_nodes.hybrid(tmp_path, A)
    rounds = Rounds(root)
    rounds.next()
    new = "/kubepods/burstable/pod1/new"
    cgroup_nodes.add_v1(root, new)
    _use_cpu(root, new, 1_000_000)
    assert new in rounds.next()


def test_one_that_was_replaced_is_followed(tmp_path: Path) -> None:
    root = cgroup_nodes.hybrid(tmp_path, A)
    rounds = Rounds(root)
    rounds.next()
    _remove(root, A)
    new = "/kubepods/burstable/pod1/new"  # as many directories as before
    cgroup_nodes.add_v1(root, new)
    _use_cpu(root, new, 1_000_000)
    assert new in rounds.next()
    rounds.observer.begin_segment()
    assert A not in rounds.next()


def test_a_tree_that_went_is_forgotten(tmp_path: Path) -> None:
    root = cgroup_nodes.hybrid(tmp_path, A, B)
    rounds = Rounds(root)
    rounds.next()
    for path in (B, "/kubepods/besteffort/pod2", "/kubepods/besteffort"):
        _remove(root, path)
    for _ in range(cgroups._TURNS):
        rounds.next()
    rounds.observer.begin_segment()
    assert not any("besteffort" in path for path in rounds.next())


def test_one_of_the_memory_hierarchy_only_is_told_too(tmp_path: Path) -> None:
    root = cgroup_nodes.hybrid(tmp_path, "/")
    cgroup_nodes.add_v1(root, "/process_api/x", "memory")
    row = Rounds(root).next()["/process_api/x"]
    assert row["memory_bytes"] == 20_877_312
    assert "usage_us" not in row


def test_when_too_many_ran_the_rest_is_read_in_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_MAX_READ", 3)
    paths = [f"/p/c{number}" for number in range(6)]
    rounds = Rounds(cgroup_nodes.hybrid(tmp_path, *paths))
    told: set[str] = set()
    for _ in range(4):
        told |= set(rounds.next())
    assert told >= set(paths)


def test_v2_tells_pressure_too(tmp_path: Path) -> None:
    rounds = Rounds(cgroup_nodes.unified(tmp_path, "/system.slice/a.service"))
    rows = rounds.next()
    assert rows["/system.slice/a.service"]["throttled"] == 7
    mine = [row for row in rounds.pressure if row["cgroup"] == "/system.slice/a.service"]
    assert {row["resource"]: (row["some_us"], row["full_us"]) for row in mine} == {
        "cpu": (900, 400),
        "memory": (90, 40),
        "io": (9, 4),
    }
    assert {column.name for column in PRESSURE.columns} == set(mine[0])
    rounds.next()
    assert rounds.pressure == []


def test_without_cgroups_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        Rounds(tmp_path).next()


# -- the live kernel -------------------------------------------------------


@pytest.fixture
def busy() -> Iterator[str]:
    """A process that runs in a cgroup of its own, in every hierarchy that accounts."""
    name = f"nodescope-usage-{os.getpid()}"
    wanted = {"cpu", "cpuacct", "memory", "pids"}
    folders = [
        each.mount / name
        for each in read_hierarchies(Places())
        if each.version == 2 or wanted & each.controllers
    ]
    for folder in folders:
        folder.mkdir()
    script = (
        "import os, sys\nfor path in sys.argv[1:]:\n    open(path, 'w').write(str(os.getpid()))\n"
    )
    script += (
        "data = bytearray(8 << 20)\nprint('ready', flush=True)\nwhile True: sum(range(1000))\n"
    )
    arguments = [str(folder / "cgroup.procs") for folder in folders]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield f"/{name}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        for folder in folders:
            wait_for(partial(_gone, folder), f"{folder} can be removed")


def _gone(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


@pytest.mark.root
@pytest.mark.live
def test_what_runs_now_is_seen_to_use_cpu_memory_and_tasks(busy: str) -> None:
    rounds = Rounds(Path("/"))

    def told() -> Any:
        return rounds.next().get(busy)

    first = wait_for(told, f"{busy} is told")
    assert first["usage_us"] > 0
    later = wait_for(told, f"{busy} is told again")
    assert later["usage_us"] > first["usage_us"]
    assert later["tasks"] == 1
    assert later["memory_bytes"] >= 8 << 20
