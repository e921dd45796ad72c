from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.sources.memory_cgroups.trees import V1Tree, V2Tree, put

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.sources.memory_cgroups.counts import (
    Count,
    Counting,
    Directories,
    parse_cgroup_stat,
    parse_tracked,
)
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy


def test_v1_counts_what_has_no_folder_and_not_what_v2_says(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    for path in ("/a", "/a/b", "/c"):
        tree.group(path)
    tree.track(5_300)
    counting = Counting(find_memory_hierarchy(tree.places))
    assert counting.read() == Count("hybrid", 5_304, 4, 5_300)
    tree.track(12)
    assert counting.read() == Count("hybrid", 16, 4, 12)


def test_of_a_part_of_v1_dying_ones_are_not_known(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    tree.track(70)
    (tree.mount / "cgroup.sane_behavior").unlink()
    assert Counting(find_memory_hierarchy(tree.places)).read() == Count("hybrid", 71, 1, None)


def test_more_folders_than_the_kernel_tracked_are_no_dying_ones(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)  # made between two reads
    tree.group("/a")
    tree.paths.clear()
    tree.track(1)
    assert Counting(find_memory_hierarchy(tree.places)).read() == Count("hybrid", 2, 2, 0)


def test_v1_switched_off_is_absent(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    tree.track(0, enabled=False)
    with pytest.raises(SourceAbsent):
        Counting(find_memory_hierarchy(tree.places)).read()


def test_v2_counts_by_controller_where_the_kernel_does(tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    tree.group("/", visible=21, dying=340)
    assert Counting(find_memory_hierarchy(tree.places)).read() == Count("v2", 362, 22, 340)


def test_v2_of_older_kernels_counts_all(tmp_path: Path) -> None:
    tree = V2Tree(tmp_path, counts=False)
    tree.group("/", visible=21, dying=7)
    assert Counting(find_memory_hierarchy(tree.places)).read() == Count("v2", 29, 22, 7)


def test_v2_before_dying_ones_were_counted(tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    put(tree.mount / "cgroup.stat", "nr_descendants 3\n")
    assert Counting(find_memory_hierarchy(tree.places)).read() == Count("v2", None, 4, None)


def test_parse_tracked() -> None:
    content = b"#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\nmemory\t4\t33\t1\n"
    assert parse_tracked(content) == 33
    assert parse_tracked(content.replace(b"33\t1", b"33\t0")) is None
    assert parse_tracked(b"cpu\t1\t1\t1\n") is None  # built without v1's memory controller
    with pytest.raises(MalformedSource, match="line 1"):
        parse_tracked(b"memory\tx\n")


def test_parse_cgroup_stat() -> None:
    assert parse_cgroup_stat(b"nr_descendants 3\nnr_dying_descendants 0\n") == {
        b"nr_descendants": 3,
        b"nr_dying_descendants": 0,
    }
    with pytest.raises(MalformedSource, match="line 2"):
        parse_cgroup_stat(b"nr_descendants 3\nnr_dying\n")


def _make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).mkdir(parents=True)


def test_folders_are_counted_again_as_they_come_and_go(tmp_path: Path) -> None:
    directories = Directories(str(tmp_path))
    assert directories.count() == 1
    _make(tmp_path, "a/b", "a/c", "d")
    put(tmp_path / "a/memory.stat", "not a folder")
    assert directories.count() == 5
    _make(tmp_path, "a/b/e")  # in one that had none
    assert directories.count() == 6
    shutil.rmtree(tmp_path / "a/b")
    assert directories.count() == 4


def test_one_folder_for_another_is_seen(tmp_path: Path) -> None:
    directories = Directories(str(tmp_path))
    _make(tmp_path, "a/one", "a/two/below")
    assert directories.count() == 5
    shutil.rmtree(tmp_path / "a/one")  # the number of links is as before
    _make(tmp_path, "a/other/x/y")
    assert directories.count() == 7


def test_a_vanished_mount_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        Directories(str(tmp_path / "gone")).count()
