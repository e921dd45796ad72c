"""Processes of one moment: whose they are, and the sockets they have."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from nodescope.sources.processes.process_table import (
    ProcessSeen,
    index_processes,
    parse_cgroup_paths,
    parse_inner_pid,
    read_process_table,
)

_ID = "3f2a" * 16


def _process(pid: int, *cgroups: str, parent: int = 1) -> ProcessSeen:
    return ProcessSeen(pid, parent, "x", cgroups, pid, "net:[1]", frozenset({pid * 10}))


def test_this_process_is_in_the_table_with_its_sockets() -> None:
    with socket.socket() as mine:
        table = read_process_table(Path("/proc"))
        inode = os.fstat(mine.fileno()).st_ino
        assert [each.pid for each in table.having(inode)] == [os.getpid()]
    assert table.processes[os.getpid()].parent == os.getppid()


def test_links_that_are_hidden_are_not_closed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A security module may list the descriptors of a process and hide where they lead."""
    folder = tmp_path / "7"
    (folder / "fd").mkdir(parents=True)
    (folder / "fd/0").symlink_to("socket:[12]")
    (folder / "stat").write_text("7 (x) S 1 7")
    (folder / "cgroup").write_text("0::/a\n")
    (folder / "status").write_text("NSpid:\t7\n")
    assert read_process_table(tmp_path).processes[7].sockets == frozenset({12})

    def deny(path: str) -> str:
        raise PermissionError(path)

    monkeypatch.setattr("os.readlink", deny)
    assert read_process_table(tmp_path).processes[7].sockets is None


def test_a_container_is_told_by_whichever_hierarchy_names_it() -> None:
    """Runc leaves the unified cgroup of docker's unit alone beside v1 hierarchies."""
    unit = "/system.slice/docker.service"
    inside = _process(5, unit, f"/docker/{_ID}")
    daemon = _process(6, unit)
    table = index_processes([inside, daemon])
    assert [each.pid for each in table.below(unit)] == [6]
    assert [each.pid for each in table.of_container(_ID)] == [5]


def test_a_unit_of_a_systemd_in_a_container_keeps_its_processes() -> None:
    unit = f"/docker/{_ID}/system.slice/kubelet.service"
    table = index_processes([_process(5, unit), _process(6, f"{unit}/helper"), _process(7, "/x")])
    assert [each.pid for each in table.below(unit)] == [5, 6]
    assert table.below("/docker") == []  # another name that only begins so


def test_paths_are_distinct_and_the_root_tells_nothing() -> None:
    content = b"0::/a\n1:name=systemd:/a\n2:memory:/b (deleted)\n3:cpuset:/\n"
    assert parse_cgroup_paths(content) == ("/a", "/b")


def test_the_innermost_number_counts() -> None:
    assert parse_inner_pid(b"Name:\tx\nNSpid:\t812\t7\n") == 7
    assert parse_inner_pid(b"Name:\tx\n") is None
