from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.blocked_tasks import BlockedTasksObserver
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.witness_tables import BlockedTaskRow
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places

_STAT = "{} ({}) {} 1 1 1 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 777 1 1 " + "0 " * 30 + "\n"


class Host:
    """A tree of /proc and /sys, in which tasks come and go."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 100
        self.reports = LogReports()
        for folder in ("proc/self", "proc/pressure", "proc/sys/kernel", "sys/devices/system/cpu"):
            (root / folder).mkdir(parents=True)
        (root / "sys/devices/system/cpu/online").write_text("0-1\n")
        (root / "proc/loadavg").write_text("0.00 0.00 0.00 1/9 1\n")
        (root / "proc/stat").write_text("cpu 1\nprocs_blocked 1\n")
        (root / "proc/self/stack").write_text("")
        (root / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
        (root / "sys/fs/cgroup/paused").mkdir(parents=True)
        (root / "sys/fs/cgroup/paused/cgroup.events").write_text("populated 1\nfrozen 1\n")
        self.stall(0)
        self.observer = BlockedTasksObserver(Places(root), self.reports)

    def stall(self, seconds: float) -> None:
        for resource in ("io", "memory"):
            total = int(seconds * 1_000_000) if resource == "io" else 0
            (self.root / "proc/pressure" / resource).write_text(
                f"some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n"
            )

    def task(self, pid: int, comm: str, state: str, cgroup: str) -> None:
        folder = self.root / "proc" / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(_STAT.format(pid, comm, state))
        (folder / "schedstat").write_text("100 200 3\n")
        (folder / "wchan").write_text("percpu_rwsem_wait")
        (folder / "stack").write_text("[<0>] percpu_rwsem_wait+0x1/0x2\n[<0>] vfs_write+0x3/0x4\n")
        (folder / "cgroup").write_text(f"0::{cgroup}\n")

    def look(self) -> list[BlockedTaskRow]:
        self.now += 1
        self.stall(self.now - 100)
        return self.observer.observe(self.now * SECOND_NS).rows_of(BlockedTaskRow)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_who_is_blocked_on_what_and_in_whose_cgroup(host: Host) -> None:
    host.task(7, "dd", "D", "/system.slice/writer.service")
    host.task(8, "sh", "S", "/")
    rows = [row for _ in range(4) for row in host.look()]
    assert rows[0] == BlockedTaskRow(
        time_ns=rows[0].time_ns, pid=7, tid=7, comm="dd", cgroup="/system.slice/writer.service",
        blocked_ns=SECOND_NS, waits_in="percpu_rwsem_wait",
        stack="vfs_write;percpu_rwsem_wait", frozen=None,
    )  # fmt: skip
    assert {row.tid for row in rows} == {7}


def test_a_task_of_a_frozen_cgroup_is_told_as_such(host: Host) -> None:
    host.task(7, "redis", "D", "/paused")
    (row,) = next(rows for _ in range(9) if (rows := host.look()))
    assert row.frozen is True


def test_a_segment_begins_with_those_that_are_blocked(host: Host) -> None:
    host.task(7, "dd", "D", "/")
    for _ in range(13):
        host.look()
    host.observer.begin_segment()
    (row,) = host.look()
    assert row.blocked_ns is not None
    assert row.blocked_ns > 5 * SECOND_NS


def test_when_it_is_over_its_whole_length_is_told(host: Host) -> None:
    host.task(7, "dd", "D", "/")
    for _ in range(9):
        host.look()
    last = host.now
    host.task(7, "dd", "S", "/")
    (row,) = host.look()
    assert row.time_ns == last * SECOND_NS
    assert row.blocked_ns == (last - 103) * SECOND_NS  # the reason came with the third look
    assert host.look() == []


def test_without_a_sign_no_task_is_read(host: Host) -> None:
    host.task(7, "dd", "D", "/")
    for at in range(9):
        assert host.observer.observe((200 + at) * SECOND_NS).empty


def test_a_hung_task_of_the_log_is_a_reason(host: Host) -> None:
    host.task(7, "dd", "D", "/")
    host.observer.observe(200 * SECOND_NS)
    host.reports.tell(200 * SECOND_NS + 1, "hung_task", ("dd",))
    assert host.observer.observe(201 * SECOND_NS).empty
    (row,) = host.observer.observe(202 * SECOND_NS).rows_of(BlockedTaskRow)
    assert row.tid == 7


# -- tasks that are blocked for real --------------------------------------------------

# The parent of a vfork(2) waits uninterruptibly until its child executes something, or ends.
_VFORK = """
import ctypes, os
if ctypes.CDLL(None).vfork() == 0:
    os.write(1, b"x")
    os.read(0, 1)
    os._exit(0)
"""


def _blocked_here(tid: int) -> BlockedTaskRow:
    """Look for a task for two seconds of a clock of ours, because the log tells of a hung one."""
    reports = LogReports()
    observer = BlockedTasksObserver(Places(), reports)
    began = time.monotonic_ns()
    observer.observe(began)
    reports.tell(began + 1, "hung_task", ())
    rows = [
        row
        for at in range(1, 90)
        for row in observer.observe(began + at * SECOND_NS).rows_of(BlockedTaskRow)
        if row.tid == tid
    ]
    observer.close()
    assert rows, "it is found"
    return rows[0]


@pytest.mark.live
def test_a_task_that_the_kernel_blocks_is_found() -> None:
    command = [sys.executable, "-c", _VFORK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.read(1)
        if Path(f"/proc/{parent.pid}/stat").read_text().rpartition(")")[2].split()[0] != "D":
            parent.kill()
            pytest.skip("this kernel lets the parent of a vfork wait otherwise")
        row = _blocked_here(parent.pid)
        parent.kill()
    assert row.comm.startswith("python")
    assert row.blocked_ns is not None
    assert row.blocked_ns >= SECOND_NS
    assert row.cgroup is not None


def _is_removed(cgroup: Path) -> bool:
    try:
        cgroup.rmdir()
    except OSError:
        return False  # what ended a moment ago may not have left it yet
    return True


@pytest.mark.root
@pytest.mark.live
def test_a_task_that_the_freezer_stops_is_told_as_frozen() -> None:
    mounts = {each.name: each.mount for each in read_hierarchies(Places())}
    if "freezer" not in mounts:
        pytest.skip("tasks of a frozen v2 cgroup are not in uninterruptible sleep")
    cgroup = mounts["freezer"] / f"nodescope-frozen-{os.getpid()}"
    cgroup.mkdir()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        (cgroup / "cgroup.procs").write_text(str(sleeper.pid))
        (cgroup / "freezer.state").write_text("FROZEN")
        stat = Path(f"/proc/{sleeper.pid}/stat")
        wait_for(lambda: " D " in stat.read_text(), "it is stopped")
        row = _blocked_here(sleeper.pid)
    finally:
        (cgroup / "freezer.state").write_text("THAWED")
        sleeper.kill()
        sleeper.wait()
        wait_for(lambda: _is_removed(cgroup), "the cgroup can be removed")
    assert (row.comm, row.frozen) == ("sleep", True)
