from __future__ import annotations

import os
import struct
from pathlib import Path

from nodescope.sources.cgroups.announced import Announced, Renamed
from nodescope.sources.cgroups.maker_names import RenamedProcesses


def _renamed(pid: int, name: str, time_ns: int) -> bytes:
    body = struct.pack("<II", pid, pid) + name.encode().ljust(16, b"\0")
    body += struct.pack("<IIQ", pid, pid, time_ns)
    return struct.pack("<IHH", 3, 0, 8 + len(body)) + body


def test_what_is_kept_is_read_once_when_it_is_asked_for(tmp_path: Path) -> None:
    processes = RenamedProcesses(tmp_path)
    processes.keep(_renamed(5, "runc", 1) + _renamed(6, "sh", 2))
    processes.keep(_renamed(5, "agent", 3))
    assert processes.take_kept({5}, 9) == Announced(
        [Renamed(1, 5, "runc"), Renamed(3, 5, "agent")], {6: b"sh"}
    )
    assert processes.take_kept({5}, 9) == Announced()


def test_the_last_name_counts_and_the_living_are_asked(tmp_path: Path) -> None:
    processes = RenamedProcesses(tmp_path)
    processes.rename(5, "runc")
    processes.rename(5, "agent")
    assert processes.name(5) == "agent"
    assert processes.name(6) is None
    (tmp_path / "6").mkdir()
    (tmp_path / "6/comm").write_text("kubelet\n")
    assert processes.name(6) == "kubelet"
    assert RenamedProcesses(Path("/proc")).name(os.getpid())


def test_memory_is_bounded_and_old_names_are_not_trusted(tmp_path: Path) -> None:
    processes = RenamedProcesses(tmp_path)
    processes.rename(5, "runc")
    for _ in range(40):
        processes.keep(_renamed(7, "sh", 1) * 1000)
    assert len(processes.take_kept({7}, 9).records) < 40_000
    assert processes.name(5) is None
    for pid in range(10_000):
        processes.rename(pid, "x")
    assert processes.name(1) is None
    assert processes.name(9_999) == "x"


def test_names_of_many_are_learnt_at_once_and_the_oldest_forgotten(tmp_path: Path) -> None:
    processes = RenamedProcesses(tmp_path)
    processes.rename(5, "runc")
    processes.rename(6, "sh")
    processes.learn(dict.fromkeys(range(10, 4105), b"x") | {5: b"agent\xff"})
    assert processes.name(5) == "agent\ufffd"
    assert processes.name(6) is None
    assert processes.name(10) == processes.name(4104) == "x"
