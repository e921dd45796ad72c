from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.memory_cgroups.trees import V1Tree, V2Tree, put

from nodescope.errors import SourceAbsent
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.places import Places


def test_memory_on_v1_beside_v2_is_hybrid(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    found = find_memory_hierarchy(tree.places)
    assert (found.version, found.mount, found.whole) == ("hybrid", str(tree.mount), True)
    assert not found.is_v2
    assert found.directory("/") == str(tree.mount)
    assert found.directory("/a/b") == f"{tree.mount}/a/b"


def test_memory_on_v1_alone(tmp_path: Path) -> None:
    assert find_memory_hierarchy(V1Tree(tmp_path, hybrid=False).places).version == "v1"


def test_v2(tmp_path: Path) -> None:
    found = find_memory_hierarchy(V2Tree(tmp_path).places)
    assert (found.version, found.whole) == ("v2", True)
    assert found.is_v2


def test_v2_without_the_memory_controller_is_not_it(tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    put(tree.mount / "cgroup.controllers", "cpu pids\n")
    with pytest.raises(SourceAbsent, match="memory controller"):
        find_memory_hierarchy(tree.places)


def test_a_part_of_v2_is_told_from_the_whole(tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    put(tree.mount / "cgroup.events", "populated 1\n")
    assert not find_memory_hierarchy(tree.places).whole


def test_in_a_container_the_hosts_hierarchy_is_preferred(tmp_path: Path) -> None:
    # The container's own mount begins at its own cgroup; the host's stands at /host.
    own, host = tmp_path / "sys/fs/cgroup/memory", tmp_path / "host/sys/fs/cgroup/memory"
    put(own / "memory.stat", "")
    put(host / "cgroup.sane_behavior", "0\n")
    put(
        tmp_path / "proc/self/mounts",
        "cgroup /sys/fs/cgroup/memory cgroup ro,relatime,memory 0 0\n"
        "cgroup /host/sys/fs/cgroup/memory cgroup ro,relatime,memory 0 0\n",
    )
    found = find_memory_hierarchy(Places(tmp_path))
    assert (found.version, found.mount, found.whole) == ("v1", str(host), True)


def test_a_host_mounted_elsewhere_is_described_by_its_first_process(tmp_path: Path) -> None:
    # /proc/self of the host's proc shows the reader's own mounts: nothing of the host's.
    put(tmp_path / "proc/self/mounts", "overlay / overlay rw 0 0\n")
    put(tmp_path / "proc/1/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    put(tmp_path / "sys/fs/cgroup/cgroup.controllers", "memory\n")
    assert find_memory_hierarchy(Places(tmp_path)).version == "v2"


def test_a_mount_point_with_a_blank(tmp_path: Path) -> None:
    put(tmp_path / "my cgroups/cgroup.sane_behavior", "0\n")
    put(tmp_path / "proc/self/mounts", "cgroup /my\\040cgroups cgroup rw,cpu,memory 0 0\n")
    assert find_memory_hierarchy(Places(tmp_path)).mount == str(tmp_path / "my cgroups")


def test_none_is_said_with_a_hint(tmp_path: Path) -> None:
    put(tmp_path / "proc/self/mounts", "overlay / overlay rw 0 0\n")
    with pytest.raises(SourceAbsent) as caught:
        find_memory_hierarchy(Places(tmp_path))
    assert caught.value.hint


def test_no_mount_table_is_an_error_by_name(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent, match="self/mounts"):
        find_memory_hierarchy(Places(tmp_path))
