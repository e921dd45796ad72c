from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.sources.cgroups.churn import (
    ChurnEvent,
    ChurnWatch,
    ScanWatch,
    open_watch,
    parse_hierarchy_numbers,
)
from nodescope.sources.cgroups.hierarchies import read_hierarchies
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


_NUMBERS = itertools.count()


class Listener:
    """All events of one watch below one cgroup, by name of the cgroup, as far as they came.

    An event may be lost, when a ring is full or a core goes offline. So each test
    tries again and again, with a new cgroup each time, until one was seen whole.
    """

    def __init__(self, watch: ChurnWatch, parent: Path) -> None:
        self.watch, self.parent = watch, parent
        self.events: list[ChurnEvent] = []

    def poll(self) -> dict[str, dict[str, ChurnEvent]]:
        below = f"/{self.parent.name}/"
        self.events += [each for each in self.watch.read() if each.path.startswith(below)]
        seen: dict[str, dict[str, ChurnEvent]] = {}
        for each in self.events:
            seen.setdefault(each.path.removeprefix(below), {})[each.kind] = each
        return seen

    def try_until(self, act: Callable[[Path], None], *kinds: str) -> dict[str, ChurnEvent]:
        """The events of the first cgroup of which all these kinds were seen."""
        names = (f"try{number}" for number in itertools.count())

        def seen() -> list[dict[str, ChurnEvent]]:
            act(self.parent / next(names))
            return [each for each in self.poll().values() if set(kinds) <= set(each)]

        return wait_for(seen, f"one is {', '.join(kinds)}")[0]


@pytest.fixture
def parent() -> Iterator[Path]:
    """A cgroup of our own in the memory hierarchy; whatever is left in it goes with it."""
    hierarchy = next(each for each in read_hierarchies(Places()) if "memory" in each.controllers)
    # A new name each time: releases of an earlier test's may still come.
    folder = hierarchy.mount / f"nodescope-churn-{os.getpid()}-{next(_NUMBERS)}"
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
    yield Listener(watch, parent)
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


def _make_and_remove(cgroup: Path) -> None:
    cgroup.mkdir()
    cgroup.rmdir()


@pytest.mark.root
@pytest.mark.live
def test_a_cgroup_that_never_held_anything_is_made_removed_and_released(
    listener: Listener,
) -> None:
    seen = listener.try_until(_make_and_remove, "made", "removed", "released")
    made, removed, released = seen["made"], seen["removed"], seen["released"]
    assert made.identity == removed.identity == released.identity
    assert made.time_ns <= removed.time_ns <= released.time_ns
    assert (made.pid, removed.pid) == (os.getpid(), os.getpid())
    own = Path("/proc/self/comm").read_text().strip()
    assert (made.comm, removed.comm) == (own, own)
    assert "memory" in made.hierarchy or made.hierarchy == "unified"


@pytest.mark.root
@pytest.mark.live
def test_the_maker_is_known_after_it_is_gone(listener: Listener) -> None:
    pids = set()

    def make(cgroup: Path) -> None:
        maker = subprocess.Popen(["mkdir", str(cgroup)])
        assert maker.wait() == 0
        pids.add(maker.pid)

    made = listener.try_until(make, "made")["made"]
    assert made.pid in pids
    assert made.comm == "mkdir"


@pytest.mark.root
@pytest.mark.live
def test_a_cgroup_pinned_by_a_file_is_removed_and_not_released(listener: Listener) -> None:
    with ExitStack() as files:

        def pin(cgroup: Path) -> None:
            # tmpfs: its page stays charged to the cgroup of whoever wrote it
            file = files.enter_context(tempfile.NamedTemporaryFile(dir="/dev/shm"))
            cgroup.mkdir()
            _run_inside(cgroup, file.name)
            _remove(cgroup)

        attached = listener.try_until(pin, "made", "attached", "removed")["attached"]
        assert attached.comm is not None
        assert attached.comm.startswith("python")
        pinned = set(listener.poll())

        def other_is_released() -> bool:  # long enough for a release to come, were it to come
            _make_and_remove(listener.parent / "other")
            return "released" in listener.poll().get("other", {})

        wait_for(other_is_released, "another is released")
        seen = listener.poll()
        assert not any("released" in seen[name] for name in pinned)


@pytest.mark.root
@pytest.mark.live
def test_many_at_once_are_told_in_the_order_of_time(listener: Listener) -> None:
    names = (f"many{number}" for number in itertools.count())

    def released() -> bool:
        for name in itertools.islice(names, 40):
            _make_and_remove(listener.parent / name)
        return sum("released" in each for each in listener.poll().values()) >= 200

    wait_for(released, "200 are released")
    times = [each.time_ns for each in listener.events]
    assert times == sorted(times)


_MAKE_INSIDE = """
import os, subprocess, sys
for procs in sys.argv[2:]:
    with open(procs, "w") as file:
        file.write(str(os.getpid()))
subprocess.run(["mkdir", sys.argv[1]], check=True)
os.read(0, 1)
"""


@pytest.mark.root
@pytest.mark.live
@pytest.mark.parametrize("where", ["unified", "name=systemd"])
def test_a_short_lived_maker_is_placed_in_its_cgroup(parent: Path, where: str) -> None:
    """By the id that the kernel gives; on v1 alone by the script that started it."""
    hierarchies = {each.name: each for each in read_hierarchies(Places())}
    if where not in hierarchies:
        pytest.skip(f"no hierarchy {where} here")
    home = hierarchies[where].mount / f"nodescope-maker-{os.getpid()}-{next(_NUMBERS)}"
    watch = ChurnWatch()  # it begins before the home is there, too
    home.mkdir()
    try:
        listener = Listener(watch, parent)

        def make(cgroup: Path) -> None:
            command = [sys.executable, "-c", _MAKE_INSIDE, str(cgroup), str(home / "cgroup.procs")]
            with subprocess.Popen(command, stdin=subprocess.PIPE) as script:
                wait_for(cgroup.exists, "it is made", process=script)
                listener.poll()

        made = listener.try_until(make, "made")["made"]
        assert (made.comm, made.maker_cgroup) == ("mkdir", f"/{home.name}")
    finally:
        watch.close()
        _remove(home)
