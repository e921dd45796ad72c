from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.sources.cgroup_churn import (
    ChurnEvent,
    ChurnWatch,
    ScanWatch,
    open_watch,
    parse_hierarchy_numbers,
)
from nodescope.sources.cgroup_tree import read_hierarchies
from nodescope.sources.places import Places


def test_hierarchies_by_number() -> None:
    content = b"9:name=systemd:/\n4:memory:/a:b\n1:cpu,cpuacct:/\n0::/init.scope\n"
    assert parse_hierarchy_numbers(content) == {
        9: "name=systemd",
        4: "memory",
        1: "cpu,cpuacct",
        0: "unified",
    }
    assert parse_hierarchy_numbers(b"nonsense\n\xff:x\n") == {}


def _node(root: Path) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    (root / "sys/fs/cgroup/old").mkdir(parents=True)
    return root / "sys/fs/cgroup"


def test_scans_tell_what_came_and_went(tmp_path: Path) -> None:
    mount = _node(tmp_path)
    watch = ScanWatch(Places(tmp_path), clock=lambda: 7)
    assert watch.read() == []
    old = (mount / "old").stat().st_ino
    (mount / "new/inner").mkdir(parents=True)
    (mount / "old").rmdir()
    found = watch.read()
    assert {(each.kind, each.path) for each in found} == {
        ("removed", "/old"),
        ("made", "/new"),
        ("made", "/new/inner"),
    }
    assert ChurnEvent(7, "removed", "/old", "unified", old, None, None) in found
    assert watch.read() == []
    watch.close()


def test_without_tracepoints_directories_are_scanned(tmp_path: Path) -> None:
    _node(tmp_path)
    # A tree whose tracefs has no cgroup tracepoints, as on kernels before 4.10.
    (tmp_path / "sys/kernel/tracing/events").mkdir(parents=True)
    watch = open_watch(Places(tmp_path))
    assert watch.way == "scan"
    assert list(watch.descriptors) == []
    watch.close()


# -- the live kernel -------------------------------------------------------


class Listener:
    """All events of one watch below one cgroup, as far as they have come."""

    def __init__(self, watch: ChurnWatch, below: str) -> None:
        self.watch, self.below = watch, below
        self.events: list[ChurnEvent] = []

    def poll(self) -> list[ChurnEvent]:
        self.events += [each for each in self.watch.read() if each.path.startswith(self.below)]
        return self.events

    def wait(self, kind: str, path: str) -> ChurnEvent:
        def found() -> list[ChurnEvent]:
            return [each for each in self.poll() if (each.kind, each.path) == (kind, path)]

        return wait_for(found, f"{path} is {kind}")[0]


@pytest.fixture
def parent() -> Iterator[Path]:
    """A cgroup of our own in the memory hierarchy; whatever is left in it goes with it."""
    hierarchy = next(each for each in read_hierarchies(Places()) if "memory" in each.controllers)
    folder = hierarchy.mount / f"nodescope-churn-{os.getpid()}"
    folder.mkdir()
    if hierarchy.version == 2:
        (hierarchy.mount / "cgroup.subtree_control").write_text("+memory")
        (folder / "cgroup.subtree_control").write_text("+memory")
    yield folder
    for child in folder.iterdir():
        if child.is_dir():
            child.rmdir()
    folder.rmdir()


@pytest.fixture
def listener(parent: Path) -> Iterator[Listener]:
    watch = ChurnWatch()
    yield Listener(watch, f"/{parent.name}/")
    watch.close()


_RUN_INSIDE = """
import os, sys
with open(sys.argv[1] + "/cgroup.procs", "w") as procs:
    procs.write(str(os.getpid()))
if len(sys.argv) > 2:
    with open(sys.argv[2], "wb") as file:
        file.write(b"x" * 4096)
"""


def _run_inside(cgroup: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", _RUN_INSIDE, str(cgroup), *arguments], check=True)


def _remove(cgroup: Path) -> None:
    """What ended a moment ago may not have left its cgroup yet."""

    def removed() -> bool:
        try:
            cgroup.rmdir()
        except OSError:
            return False
        return True

    wait_for(removed, f"{cgroup} can be removed")


@pytest.mark.root
@pytest.mark.live
def test_a_cgroup_that_never_held_anything_is_made_removed_and_released(
    parent: Path, listener: Listener
) -> None:
    child = parent / "empty"
    child.mkdir()
    child.rmdir()
    path = f"/{parent.name}/empty"
    released = listener.wait("released", path)
    made, removed = listener.wait("made", path), listener.wait("removed", path)
    assert made.identity == removed.identity == released.identity
    assert made.time_ns <= removed.time_ns <= released.time_ns
    assert (made.pid, removed.pid) == (os.getpid(), os.getpid())
    own = Path("/proc/self/comm").read_text().strip()
    assert (made.comm, removed.comm) == (own, own)
    assert "memory" in made.hierarchy or made.hierarchy == "unified"


@pytest.mark.root
@pytest.mark.live
def test_the_maker_is_known_after_it_is_gone(parent: Path, listener: Listener) -> None:
    maker = subprocess.Popen(["mkdir", str(parent / "short")])
    assert maker.wait() == 0
    made = listener.wait("made", f"/{parent.name}/short")
    assert (made.pid, made.comm) == (maker.pid, "mkdir")


@pytest.mark.root
@pytest.mark.live
def test_a_cgroup_pinned_by_a_file_is_removed_and_not_released(
    parent: Path, listener: Listener
) -> None:
    child = parent / "pinned"
    child.mkdir()
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:  # tmpfs: its pages stay charged
        _run_inside(child, file.name)
        _remove(child)
        (parent / "after").mkdir()
        (parent / "after").rmdir()
        # Long enough for a release to come, were it not held; it must not come, ever.
        listener.wait("released", f"/{parent.name}/after")
        listener.wait("removed", f"/{parent.name}/pinned")
        attached = listener.wait("attached", f"/{parent.name}/pinned")
        assert attached.comm is not None
        assert attached.comm.startswith("python")
        kinds = {each.kind for each in listener.poll() if each.path.endswith("/pinned")}
        assert kinds == {"made", "removed", "attached"}


@pytest.mark.root
@pytest.mark.live
def test_many_at_once_are_told_in_the_order_of_time(parent: Path, listener: Listener) -> None:
    for number in range(200):
        (parent / f"many{number}").mkdir()
        (parent / f"many{number}").rmdir()
        listener.poll()

    def all_released() -> bool:
        return sum(each.kind == "released" for each in listener.poll()) == 200

    wait_for(all_released, "all are released")
    times = [each.time_ns for each in listener.events]
    assert times == sorted(times)
