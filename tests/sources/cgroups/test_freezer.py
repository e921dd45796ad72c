from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.sources.cgroups.freezer import Freezers, parse_frozen
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places


def _places(root: Path, mounts: str) -> Places:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mounts").write_text(mounts)
    return Places(root)


def test_on_v2_events_tell(tmp_path: Path) -> None:
    for name, value in (("a", 1), ("b", 0)):
        (tmp_path / f"sys/fs/cgroup/{name}").mkdir(parents=True)
        events = tmp_path / f"sys/fs/cgroup/{name}/cgroup.events"
        events.write_text(f"populated 1\nfrozen {value}\n")
    freezers = Freezers(_places(tmp_path, "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"))
    assert freezers.is_frozen(b"0::/a\n") is True
    assert freezers.is_frozen(b"0::/b\n") is False
    assert freezers.is_frozen(b"0::/\n") is None


def test_on_v1_the_freezer_tells(tmp_path: Path) -> None:
    for name, state in (("a", "FROZEN"), ("b", "THAWED"), ("c", "FREEZING")):
        (tmp_path / f"sys/fs/cgroup/freezer/{name}").mkdir(parents=True)
        (tmp_path / f"sys/fs/cgroup/freezer/{name}/freezer.state").write_text(f"{state}\n")
    mounts = "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n"
    freezers = Freezers(_places(tmp_path, mounts))
    assert freezers.is_frozen(b"6:freezer:/a\n4:memory:/x\n0::/\n") is True
    assert freezers.is_frozen(b"6:freezer:/b\n") is False
    assert freezers.is_frozen(b"6:freezer:/c\n") is True
    assert freezers.is_frozen(b"4:memory:/a\n") is None


def test_before_v5_2_nothing_is_told() -> None:
    assert parse_frozen("populated 1\n") is None
    assert parse_frozen(None) is None


@pytest.mark.root
@pytest.mark.live
@pytest.mark.parametrize("which", ["unified", "freezer"])
def test_a_cgroup_that_is_frozen_here(which: str) -> None:
    mounts = {each.name: each.mount for each in read_hierarchies(Places())}
    if which not in mounts:
        pytest.skip(f"no hierarchy {which} here")
    cgroup = mounts[which] / f"nodescope-freeze-{os.getpid()}"
    cgroup.mkdir()
    sleeper = subprocess.Popen(["sleep", "60"])
    freeze = cgroup / ("cgroup.freeze" if which == "unified" else "freezer.state")
    on, off = ("1", "0") if which == "unified" else ("FROZEN", "THAWED")
    freezers = Freezers(Places())

    def is_frozen() -> bool | None:
        return freezers.is_frozen(Path(f"/proc/{sleeper.pid}/cgroup").read_bytes())

    try:
        (cgroup / "cgroup.procs").write_text(str(sleeper.pid))
        assert is_frozen() is False
        freeze.write_text(on)
        wait_for(is_frozen, "it is frozen")
    finally:
        freeze.write_text(off)
        sleeper.kill()
        sleeper.wait()

        def removed() -> bool:
            try:
                cgroup.rmdir()
            except OSError:
                return False
            return True

        wait_for(removed, "the cgroup can be removed")
