"""The same by the names of either version, in trees made for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent, UsageError
from nodescope.lab.cgroups import Controller, find_controller, require
from nodescope.sources.places import Places

V1 = (
    "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
    "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
)
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"


@pytest.fixture
def hybrid(tmp_path: Path) -> Places:
    return make_node(tmp_path, V1, ("cpu", "memory", "unified"))


@pytest.fixture
def unified(tmp_path: Path) -> Places:
    places = make_node(tmp_path, V2, ())
    mount = tmp_path / "sys/fs/cgroup"
    (mount / "cgroup.controllers").write_text("cpu memory pids\n")
    (mount / "cgroup.subtree_control").write_text("memory pids\n")
    return places


def make_node(root: Path, mounts: str, hierarchies: tuple[str, ...]) -> Places:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_text(mounts)
    for name in ("", *hierarchies):
        (root / "sys/fs/cgroup" / name).mkdir(parents=True, exist_ok=True)
    return Places(root=root)


def test_a_controller_is_found_where_it_is(hybrid: Places) -> None:
    found = find_controller("memory", hybrid)
    assert found == Controller("memory", hybrid.root / "sys/fs/cgroup/memory", unified=False)
    assert (found.used, found.limit) == ("memory.usage_in_bytes", "memory.limit_in_bytes")
    require("cpu", "memory", places=hybrid)


def test_a_controller_of_the_unified_hierarchy_is_found(unified: Places) -> None:
    found = find_controller("memory", unified)
    assert found == Controller("memory", unified.root / "sys/fs/cgroup", unified=True)
    assert (found.used, found.limit) == ("memory.current", "memory.max")
    require("memory", places=unified)


def test_a_controller_that_is_not_handed_down_is_refused(unified: Places) -> None:
    with pytest.raises(UsageError, match="do not have the cpu controller") as refused:
        require("memory", "cpu", places=unified)
    assert "echo +cpu" in (refused.value.hint or "")


def test_a_controller_that_is_nowhere_is_refused(hybrid: Places) -> None:
    with pytest.raises(SourceAbsent, match="no cgroup hierarchy has the pids controller"):
        require("pids", places=hybrid)


def test_no_cgroups_at_all_are_refused(tmp_path: Path) -> None:
    places = make_node(tmp_path, "proc /proc proc rw 0 0\n", ())
    with pytest.raises(SourceAbsent, match="no cgroup hierarchy is mounted"):
        require("memory", places=places)


def test_cgroups_that_cannot_be_made_are_refused(
    hybrid: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError, match="not writable"):
        require("memory", places=hybrid)


@pytest.mark.parametrize(
    ("is_unified", "file", "text"),
    [(False, "cpu.cfs_quota_us", "20000"), (True, "cpu.max", "20000 100000")],
)
def test_a_share_of_a_core(tmp_path: Path, is_unified: bool, file: str, text: str) -> None:
    Controller("cpu", tmp_path, is_unified).limit_cpu(tmp_path, 0.2)
    assert (tmp_path / file).read_text() == text


def test_those_below_have_the_controller(tmp_path: Path) -> None:
    Controller("memory", tmp_path, unified=False).hand_down(tmp_path)
    assert list(tmp_path.iterdir()) == []
    Controller("memory", tmp_path, unified=True).hand_down(tmp_path)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"
