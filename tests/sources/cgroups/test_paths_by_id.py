from __future__ import annotations

from pathlib import Path

from nodescope.sources.cgroups.paths_by_id import CgroupPaths, find_default_hierarchy


def test_directories_are_found_by_inode(tmp_path: Path) -> None:
    pod = tmp_path / "kubepods" / "pod1"
    pod.mkdir(parents=True)
    paths = CgroupPaths(tmp_path)
    assert paths.path(pod.stat().st_ino) == "/kubepods/pod1"
    assert paths.path(tmp_path.stat().st_ino) == "/"


def test_a_cgroup_is_remembered_after_it_is_gone(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.mkdir()
    inode = short.stat().st_ino
    paths = CgroupPaths(tmp_path)
    assert paths.path(inode) == "/short"
    short.rmdir()
    assert paths.path(inode) == "/short"


def test_what_perf_announces_needs_no_scan() -> None:
    paths = CgroupPaths(None)
    paths.learn(42, "/docker/abc")
    assert paths.path(42) == "/docker/abc"
    assert paths.path(43) is None
    assert paths.path(0) is None


def test_an_unknown_id_does_not_scan_again_at_once(tmp_path: Path) -> None:
    now = [0.0]
    paths = CgroupPaths(tmp_path, clock=lambda: now[0])
    assert paths.path(1) is None
    late = tmp_path / "late"
    late.mkdir()
    assert paths.path(late.stat().st_ino) is None
    now[0] = 11.0
    assert paths.path(late.stat().st_ino) == "/late"


def test_the_hierarchy_is_found_in_mounts(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    mounts = tmp_path / "self" / "mounts"
    mounts.write_text("cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\nx /a\\040b cgroup2 rw 0 0\n")
    assert find_default_hierarchy(tmp_path) == Path("/a b")
    mounts.write_text("proc /proc proc rw 0 0\n")
    assert find_default_hierarchy(tmp_path) is None
    mounts.unlink()
    assert find_default_hierarchy(tmp_path) is None
