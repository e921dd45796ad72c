from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from tests.perf import perf_records as make

from nodescope.perf import naming
from nodescope.perf.address_space import Module
from nodescope.perf.decode import split
from nodescope.perf.naming import ModuleNames
from nodescope.perf.stacks import UNKNOWN
from nodescope.symbols.perf_map import PerfMap

PID, CODE = 4242, 0x7F0000000000


class Node:
    """Modules of processes that are ours to make and end."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.now = 0.0
        self.names = ModuleNames(proc=proc, clock=lambda: self.now)

    def start(self, pid: int) -> Path:
        """A process in a container; where its map belongs."""
        (self.proc / f"{pid}/root/tmp").mkdir(parents=True)
        uid = os.geteuid()
        (self.proc / f"{pid}/status").write_text(f"Uid:\t{uid}\t{uid}\nNSpid:\t{pid}\t7\n")
        return self.proc / f"{pid}/root/tmp/perf-7.map"

    def end(self, pid: int) -> None:
        shutil.rmtree(self.proc / str(pid))

    def drain(self, *pids: int) -> None:
        """The rings say that these processes map code of no file."""
        now = time.monotonic_ns()
        records = [
            make.mmap2(pid, now, CODE, 0x1000, "//anon", inode=0, device=(0, 0)) for pid in pids
        ]
        self.names.open_new([split(0, b"".join(records))])

    def name(self, pid: int, *offsets: int) -> list[str]:
        module = Module(pid, "//anon", (0, 0), 0)
        places = np.array([CODE + offset for offset in offsets], np.uint64)
        return self.names.open_module(module).resolve(places)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_jit_that_ended_before_its_code_was_asked_for_is_named(node: Node) -> None:
    node.start(PID).write_text(f"{CODE:x} 20 compiled\n")
    node.drain(PID)
    node.end(PID)
    assert node.name(PID, 0x10) == ["compiled"]
    assert node.names.failures == {}


def test_a_map_that_came_later_is_opened_when_more_is_mapped(node: Node) -> None:
    path = node.start(PID)
    node.drain(PID)
    path.write_text(f"{CODE:x} 20 compiled\n")
    node.drain(PID)
    node.end(PID)
    assert node.name(PID, 0x10) == ["compiled"]


def test_code_without_a_name_has_a_counted_reason(node: Node) -> None:
    node.start(PID)
    assert node.name(PID, 0x10, 0x20) == [UNKNOWN, UNKNOWN]  # it writes no map
    node.start(PID + 1).write_text(f"{CODE:x} 20 compiled\n")
    assert node.name(PID + 1, 0x10, 0x30) == ["compiled", UNKNOWN]
    assert node.name(PID + 2, 0x10) == [UNKNOWN]
    assert node.names.failures == {"absent": 2, "no function": 1, "process gone": 1}


def test_of_many_that_map_code_at_once_some_are_looked_at(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking costs; a storm of short processes must not cost more than that."""
    monkeypatch.setattr(naming, "_MAX_LOOKS", 3)
    monkeypatch.setattr(naming, "_MAX_JITS_AHEAD", 4)
    looked: list[int] = []
    monkeypatch.setattr(
        PerfMap, "meet", lambda self, mapped_ns, parent=None: looked.append(self._pid)
    )
    node.drain(*range(100, 110))
    assert len(looked) == 3
    node.drain(*range(200, 210))
    assert len(node.names._ahead) == 4


def test_the_map_of_a_process_that_is_gone_is_let_go_of(node: Node) -> None:
    """It would keep a container's file system mounted."""
    for pid in (PID, PID + 1):
        node.start(pid).write_text(f"{CODE:x} 20 compiled\n")
        node.drain(pid)
    before = len(os.listdir("/proc/self/fd"))
    node.end(PID)
    node.now = 200
    node.names.close_idle()
    assert before - len(os.listdir("/proc/self/fd")) == 1
    assert node.name(PID + 1, 0x10) == ["compiled"]
