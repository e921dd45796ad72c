from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent
from nodescope.sources.cgroups.hierarchies import parse_mounts, read_hierarchies, walk
from nodescope.sources.places import Places

HYBRID = b"""\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,xattr,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""


def _tree(root: Path, mounts: bytes, *folders: str) -> Places:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_bytes(mounts)
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    return Places(root)


def test_hybrid_hierarchies_have_the_names_of_proc_cgroup() -> None:
    found = parse_mounts(HYBRID)
    assert [(each.name, each.version) for each in found] == [
        ("cpu,cpuacct", 1),
        ("memory", 1),
        ("name=systemd", 1),
        ("unified", 2),
    ]
    assert found[0].controllers == {"cpu", "cpuacct"}


def test_v2_says_its_controllers_itself(tmp_path: Path) -> None:
    places = _tree(tmp_path, b"cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", "sys/fs/cgroup")
    (tmp_path / "sys/fs/cgroup/cgroup.controllers").write_text("cpu memory pids\n")
    (found,) = read_hierarchies(places)
    assert found.mount == tmp_path / "sys/fs/cgroup"
    assert found.controllers == {"cpu", "memory", "pids"}


def test_the_hosts_hierarchy_comes_before_the_containers_own(tmp_path: Path) -> None:
    mounts = (
        f"cgroup2 /sys/fs/cgroup cgroup2 ro 0 0\ncgroup2 {tmp_path}/host\\040x cgroup2 ro 0 0\n"
    )
    places = _tree(tmp_path, mounts.encode(), "host x")
    (found,) = read_hierarchies(places)
    assert found.mount == tmp_path / "host x"


def test_without_cgroups_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_hierarchies(_tree(tmp_path, b"proc /proc proc rw 0 0\n"))
    with pytest.raises(SourceAbsent):
        read_hierarchies(Places(tmp_path / "nowhere"))


def test_walking_yields_parents_first_and_every_cgroup_once(tmp_path: Path) -> None:
    for folder in ("a/b/c", "a/d", "e"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "a/cgroup.procs").touch()
    paths = [path for path, _ in walk(tmp_path)]
    assert sorted(paths) == ["/", "/a", "/a/b", "/a/b/c", "/a/d", "/e"]
    assert paths.index("/a/b") < paths.index("/a/b/c")
    assert dict(walk(tmp_path))["/a/d"] == (tmp_path / "a/d").stat().st_ino


def test_walking_what_is_gone_is_empty(tmp_path: Path) -> None:
    assert list(walk(tmp_path / "gone")) == []
