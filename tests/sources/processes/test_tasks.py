from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import wait_for

from nodescope.sources.processes.tasks import (
    TaskFiles,
    TaskStat,
    parse_allowed_cpus,
    parse_kernel_stack,
    parse_state,
    parse_switches,
    parse_task_stat,
)

_STAT = (
    b"%d (%s) %s 1 1 1 0 -1 4194560 2862 6512 0 0 3 4 0 0 20 %d %d 0 777 1000 25 "
    b"18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 %d %d 0 0 0 0 0 0 0 0 0 0 0\n"
)


@pytest.mark.parametrize(
    ("comm", "nice", "real_time", "number", "policy", "priority"),
    [
        (b"sh", 5, 0, 0, "other", 5),
        (b"a) D (b", -20, 0, 3, "batch", -20),
        (b"hog", 0, 50, 1, "fifo", 50),
        (b"hog", 0, 1, 2, "rr", 1),
        (b"low", 19, 0, 5, "idle", 19),
        (b"odd", 0, 0, 99, None, 0),
    ],
)
def test_state_and_scheduling(
    comm: bytes, nice: int, real_time: int, number: int, policy: str | None, priority: int
) -> None:
    content = _STAT % (7, comm, b"D", nice, 3, real_time, number)
    stat = parse_task_stat(content)
    assert stat == TaskStat(comm.decode(), "D", 3, nice, real_time, policy)
    assert stat is not None
    assert stat.priority == priority
    assert parse_state(content) == ("D", 3)


@given(st.binary(max_size=200))
def test_what_is_no_stat_is_none_or_whole(content: bytes) -> None:
    parse_task_stat(content)
    parse_state(content)
    assert parse_state(b"") is None


def test_lines_of_the_status() -> None:
    status = (
        b"Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-5,39\n"
        b"voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t30\n"
    )
    assert parse_allowed_cpus(status) == "0-5,39"
    assert parse_switches(status) == 42
    assert parse_switches(b"Name:\tx\n") is None


def test_a_stack_is_told_outermost_first() -> None:
    content = (
        b"[<0>] percpu_rwsem_wait+0x116/0x140\n[<0>] lo_rw_aio.isra.0+0x2c3/0x300 [loop]\n"
        b"[<0>] ret_from_fork_asm+0x1a/0x30\n[<0>] 0xffffffffffffffff\n"
    )
    assert parse_kernel_stack(content) == "ret_from_fork_asm;lo_rw_aio.isra.0;percpu_rwsem_wait"
    assert parse_kernel_stack(b"") is None


@pytest.mark.live
def test_tasks_of_this_machine() -> None:
    files = TaskFiles(Path("/proc"))
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        wait_for(lambda: files.read_state(sleeper.pid) == ("S", 1), "it sleeps")
        assert {os.getpid(), sleeper.pid} <= set(files.list_processes())
        assert os.getpid() in files.list_threads(os.getpid())
        runs = files.count_runs(sleeper.pid)
        assert runs
        assert files.count_runs(sleeper.pid) == runs
        os.sched_setaffinity(sleeper.pid, {min(os.sched_getaffinity(0))})
        status = files.read(sleeper.pid, "status")
        assert status is not None
        assert parse_allowed_cpus(status) == str(min(os.sched_getaffinity(0)))
    finally:
        sleeper.kill()
        sleeper.wait()
        gone = files.read_stat(sleeper.pid)
        files.close()
    assert gone is None
