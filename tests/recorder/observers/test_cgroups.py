from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.nodes.recorded import GUEST, KUBELET_V1, put_node
from tests.waiting import wait_for

from nodescope.errors import SourceAbsent
from nodescope.recorder.observers import cgroups
from nodescope.recorder.observers.cgroups import CgroupsObserver
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.event import Event
from nodescope.records.event_details import OomKillDetails
from nodescope.records.node_tables import CgroupRow, PressureRow
from nodescope.records.trouble_details import CgroupLimitDetails
from nodescope.records.witness_tables import LimitRow
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places

MOUNTS = "sys/fs/cgroup"
ACCOUNTING = ("cpu", "cpuacct", "memory", "pids")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A recorded node on v1 with pods, to be changed."""
    return put_node(KUBELET_V1, tmp_path).root


def _container(root: Path, qos: str) -> str:
    """The path of the first container of a pod."""
    mount = root / MOUNTS / "cpuacct"
    return "/" + str(min(mount.glob(f"kubepods/{qos}/pod*/*/")).relative_to(mount))


@pytest.fixture
def a(root: Path) -> str:
    return _container(root, "burstable")


@pytest.fixture
def b(root: Path) -> str:
    return _container(root, "besteffort")


def _lineage(path: str) -> list[str]:
    """A cgroup and all above it."""
    parts = path.strip("/").split("/")
    return ["/", *("/" + "/".join(parts[:at]) for at in range(1, len(parts) + 1))]


def _file(root: Path, controller: str, path: str, name: str) -> Path:
    return root / MOUNTS / controller / path.lstrip("/") / name


def _copy(root: Path, path: str, new: str) -> None:
    """A cgroup like another one."""
    for controller in ACCOUNTING:
        shutil.copytree(_file(root, controller, path, ""), _file(root, controller, new, ""))


class Rounds:
    """An observer asked again and again, and its answers by cgroup."""

    def __init__(self, root: Path) -> None:
        self.reports = LogReports()
        self.observer = CgroupsObserver(Places(root), self.reports)
        self.time_ns = 0
        self.limits: list[LimitRow] = []
        self.events: list[Event] = []
        self.pressure: list[PressureRow] = []

    def next(self) -> dict[str, CgroupRow]:
        self.time_ns += 10_000_000_000
        said = self.observer.observe(self.time_ns)
        self.pressure = said.rows_of(PressureRow)
        self.limits = said.rows_of(LimitRow)
        self.events = said.events
        rows = said.rows_of(CgroupRow)
        assert all(row.time_ns == self.time_ns for row in rows)
        return {row.cgroup: row for row in rows}


def _use_cpu(root: Path, path: str, usage_ns: int) -> None:
    """CPU time counts for a cgroup and all above it."""
    for each in _lineage(path):
        file = _file(root, "cpuacct", each, "cpuacct.usage")
        file.write_text(f"{int(file.read_text()) + usage_ns}\n")


def _memory(root: Path, path: str) -> Path:
    return _file(root, "memory", path, "memory.usage_in_bytes")


def _remove(root: Path, path: str) -> None:
    for controller in ACCOUNTING:
        shutil.rmtree(_file(root, controller, path, ""))


def test_all_are_told_once_then_those_that_ran(root: Path, a: str, b: str) -> None:
    rounds = Rounds(root)
    first = rounds.next()
    assert {"/", "/kubepods", a, b} <= set(first)
    assert first[a].memory_bytes == int(_memory(root, a).read_text())
    assert rounds.next() == {}
    _use_cpu(root, a, 5_000_000)
    _memory(root, a).write_text("4096\n")
    _memory(root, b).write_text("4096\n")  # it did not run: noticed when it is its turn
    second = rounds.next()
    used_us = (second[a].usage_us or 0) - (first[a].usage_us or 0)
    assert used_us == pytest.approx(5_000, abs=1)
    assert second[a].memory_bytes == 4096
    assert b not in second


def test_what_did_not_run_has_its_turn(root: Path, b: str) -> None:
    rounds = Rounds(root)
    rounds.next()
    _memory(root, b).write_text("4096\n")
    told = [rounds.next() for _ in range(cgroups._TURNS)]
    assert [each[b].memory_bytes for each in told if b in each] == [4096]


def test_each_segment_is_told_whole(root: Path) -> None:
    rounds = Rounds(root)
    first = rounds.next()
    rounds.observer.begin_segment()
    assert set(rounds.next()) == set(first)


def test_new_ones_are_found_where_something_runs(root: Path, a: str) -> None:
    rounds = Rounds(root)
    rounds.next()
    new = f"{a.rpartition('/')[0]}/new"
    _copy(root, a, new)
    _use_cpu(root, new, 1_000_000)
    assert new in rounds.next()


def test_one_that_was_replaced_is_followed(root: Path, a: str) -> None:
    rounds = Rounds(root)
    rounds.next()
    new = f"{a.rpartition('/')[0]}/new"  # as many directories as before
    _copy(root, a, new)
    _remove(root, a)
    _use_cpu(root, new, 1_000_000)
    assert new in rounds.next()
    rounds.observer.begin_segment()
    assert a not in rounds.next()


def test_a_tree_that_went_is_forgotten(root: Path) -> None:
    rounds = Rounds(root)
    assert any("besteffort" in path for path in rounds.next())
    _remove(root, "/kubepods/besteffort")
    for _ in range(cgroups._TURNS):
        rounds.next()
    rounds.observer.begin_segment()
    assert not any("besteffort" in path for path in rounds.next())


def test_one_of_the_memory_hierarchy_only_is_told_too(root: Path) -> None:
    row = Rounds(root).next()["/sessions"]
    assert row.memory_bytes == int(_memory(root, "/sessions").read_text())
    assert row.usage_us is None


def test_one_of_the_memory_hierarchy_only_is_followed_while_something_above_it_runs(
    root: Path, a: str
) -> None:
    """A unit of systemd on v1: how it grew was read every two minutes only."""
    rounds = Rounds(root)
    rounds.next()
    _memory(root, "/sessions").write_text("123456789\n")
    assert "/sessions" not in rounds.next()  # nothing ran at all
    _use_cpu(root, a, 1_000_000)
    assert rounds.next()["/sessions"].memory_bytes == 123456789
    shutil.copytree(_memory(root, "/sessions").parent, _memory(root, "/later").parent)
    _use_cpu(root, a, 1_000_000)
    assert rounds.next()["/later"].memory_bytes == 123456789


def test_when_too_many_ran_the_rest_is_read_in_the_next_round(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = set(Rounds(root).next())
    monkeypatch.setattr(cgroups, "_MAX_READ", 3)
    rounds = Rounds(root)
    told = set(rounds.next())
    assert told < every
    for _ in range(4):
        told |= set(rounds.next())
    assert told == every


def test_v2_tells_pressure_too(tmp_path: Path) -> None:
    node = put_node(GUEST, tmp_path)
    path = "/system.slice/limited.service"
    rounds = Rounds(node.root)
    assert bool(rounds.next()[path].throttled) == node.truth["usage"][path]["throttled"]
    mine = [row for row in rounds.pressure if row.cgroup == path]
    assert {row.resource: (row.some_us, row.full_us) for row in mine} == {
        resource: tuple(map(int, re.findall(r"total=(\d+)", file.read_text())))
        for resource in ("cpu", "memory", "io")
        for file in [tmp_path / MOUNTS / path.lstrip("/") / f"{resource}.pressure"]
    }
    rounds.next()
    assert rounds.pressure == []


# -- limits ------------------------------------------------------------------


def _limit_tasks(folder: Path, *, used: int, most: str, hits: int) -> None:
    (folder / "pids.current").write_text(f"{used}\n")
    (folder / "pids.max").write_text(f"{most}\n")
    (folder / "pids.events").write_text(f"max {hits}\n")


def test_v1_tells_tasks_against_their_limit_and_forks_that_failed(root: Path, a: str) -> None:
    folder = _file(root, "pids", a, "")
    _limit_tasks(folder, used=3, most="10", hits=0)
    rounds = Rounds(root)
    rounds.next()
    assert [(row.name, row.scope, row.used, row.most) for row in rounds.limits] == [
        ("pids", a, 3, 10)
    ]
    _limit_tasks(folder, used=10, most="10", hits=6)
    _use_cpu(root, a, 5_000_000)
    rounds.next()
    assert [(row.used, row.most) for row in rounds.limits] == [(10, 10)]
    (event,) = rounds.events
    assert (event.kind, event.subject) == ("pids_limit", a)
    details = event.get(CgroupLimitDetails)
    assert (details.before, details.value, details.limit) == (0, 6, 10)
    assert details.within_s == 10.0


def test_failed_forks_of_a_new_cgroup_began_at_zero(root: Path, a: str) -> None:
    rounds = Rounds(root)
    rounds.next()
    new = f"{a.rpartition('/')[0]}/new"
    _copy(root, a, new)
    _limit_tasks(_file(root, "pids", new, ""), used=4, most="4", hits=2)
    _use_cpu(root, new, 1_000_000)
    rounds.next()
    (event,) = rounds.events
    assert event.subject == new
    details = event.get(CgroupLimitDetails)
    assert (details.before, details.value, details.within_s) == (0, 2, 10.0)


def test_the_log_has_said_it(root: Path, a: str) -> None:
    folder = _file(root, "pids", a, "")
    _limit_tasks(folder, used=10, most="10", hits=0)
    rounds = Rounds(root)
    rounds.reports.note_read(0)
    rounds.next()
    _limit_tasks(folder, used=10, most="10", hits=1)
    _use_cpu(root, a, 5_000_000)
    rounds.next()
    rounds.reports.tell(rounds.time_ns, "pids_limit", (a,))
    rounds.next()
    assert rounds.events == []


def _v2_cgroup(root: Path, path: str, *, hits: int, kills: int, usage: int) -> None:
    folder = root / MOUNTS / path.lstrip("/")
    _limit_tasks(folder, used=90, most="100", hits=hits)
    (folder / "cpu.stat").write_text(f"usage_usec {usage}\n")
    (folder / "memory.events").write_text(f"max 9\noom 1\noom_kill {kills}\noom_group_kill 1\n")


def test_v2_counts_for_those_above_and_only_the_lowest_is_reported(tmp_path: Path) -> None:
    node = put_node(GUEST, tmp_path)
    path = "/system.slice/limited.service"
    for each in _lineage(path)[1:]:
        _v2_cgroup(node.root, each, hits=0, kills=0, usage=1)
    rounds = Rounds(node.root)
    assert rounds.next()[path].oom_group_kills == 1
    for each in _lineage(path)[1:]:
        _v2_cgroup(node.root, each, hits=3, kills=2, usage=9_000_000)
    (node.root / MOUNTS / "cpu.stat").write_text("usage_usec 99000000000\n")
    rounds.next()
    assert {(event.kind, event.subject) for event in rounds.events} == {
        ("pids_limit", path),
        ("oom_kill", path),
    }
    kill = next(event for event in rounds.events if event.kind == "oom_kill")
    assert kill.get(OomKillDetails).task_memcg == path
    assert kill.get(OomKillDetails).value == 2


def test_kills_are_left_to_a_log_that_is_whole(root: Path, a: str) -> None:
    control = _file(root, "memory", a, "memory.oom_control")
    rounds = Rounds(root)
    rounds.reports.note_read(0)
    rounds.next()
    before = int(control.read_text().split()[-1])
    control.write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {before + 1}\n")
    _limit_memory(root, a)
    for _ in range(2 * cgroups._TURNS):
        rounds.next()
        assert rounds.events == []
    rounds.reports.note_lost(rounds.time_ns + 10**12)
    control.write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {before + 2}\n")
    found = []
    for _ in range(2 * cgroups._TURNS):
        rounds.next()
        found += rounds.events
    assert [(event.kind, event.subject) for event in found] == [("oom_kill", a)]


def _limit_memory(root: Path, path: str) -> None:
    _file(root, "memory", path, "memory.limit_in_bytes").write_text("4096\n")


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

    def told() -> CgroupRow | None:
        return rounds.next().get(busy)

    first = wait_for(told, f"{busy} is told")
    assert (first.usage_us or 0) > 0
    later = wait_for(told, f"{busy} is told again")
    assert (later.usage_us or 0) > (first.usage_us or 0)
    assert later.tasks == 1
    assert (later.memory_bytes or 0) >= 8 << 20
