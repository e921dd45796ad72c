from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nodes.recorded import GUEST, HYBRID, put_node

from nodescope.errors import SourceAbsent
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.cgroups.usage import Absent, UsageReader, parse_flat, parse_number
from nodescope.sources.places import Places


def _reader(root: Path) -> UsageReader:
    return UsageReader(read_hierarchies(Places(root)), 100)


def test_a_limit_of_v1_is_told_and_how_often_it_was_met(tmp_path: Path) -> None:
    node = put_node(HYBRID, tmp_path)
    path = "/pods/live"
    folder = tmp_path / "sys/fs/cgroup/memory/pods/live"
    values = _reader(tmp_path).read_seldom(path)
    assert values["memory_limit_bytes"] == node.truth["usage"][path]["memory_limit_bytes"]
    (folder / "memory.failcnt").write_text("34\n")
    assert _reader(tmp_path).read_often(path, values)["memory_limit_hits"] == 34
    assert _reader(tmp_path).read_seldom("/pods")["memory_limit_bytes"] is None


def test_cpu_and_cpuacct_may_be_one_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    )
    node = put_node(HYBRID, tmp_path / "recorded")
    for controller in ("cpu", "cpuacct"):
        recorded = node.root / "sys/fs/cgroup" / controller / "pods/live"
        shutil.copytree(recorded, tmp_path / "sys/fs/cgroup/cpu,cpuacct/a", dirs_exist_ok=True)
    reader = _reader(tmp_path)
    assert reader.others == []
    seconds = node.truth["usage"]["/pods/live"]["cpu_seconds"]
    assert (reader.read_cpu("/a")["usage_us"] or 0) / 1e6 == pytest.approx(seconds, rel=0.1)
    assert reader.read_often("/a", {}).keys() >= {"throttled", "user_us"}
    assert "memory_bytes" not in reader.read_often("/a", {})


def test_a_cgroup_that_is_gone_is_absent(tmp_path: Path) -> None:
    reader = _reader(put_node(HYBRID, tmp_path).root)
    with pytest.raises(Absent):
        reader.read_cpu("/gone")
    assert reader.read_often("/gone", {}) == {}
    assert reader.read_seldom("/gone").get("oom_kills") is None


def test_a_node_that_accounts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(
        "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n"
    )
    (tmp_path / "sys/fs/cgroup/systemd").mkdir(parents=True)
    with pytest.raises(SourceAbsent):
        _reader(tmp_path)


def test_pressure_is_a_matter_of_v2(tmp_path: Path) -> None:
    reader = _reader(put_node(GUEST, tmp_path).root)
    path = reader.pressure_path("/system.slice/fine.service", "io")
    assert path is not None
    assert Path(path).exists()
    assert reader.pressure_path("/", "io") is None


@given(st.binary())
def test_any_content_is_numbers_or_nothing(content: bytes) -> None:
    assert all(isinstance(value, int) for value in parse_flat(content).values())
    number = parse_number(content)
    assert number is None or number >= 0


def test_numbers() -> None:
    assert parse_number(b"12\n") == 12
    assert parse_number(b"max\n") is None
    assert parse_number(b"") is None
    assert parse_flat(b"a 1\nb x\nc\nd 2") == {b"a": 1, b"d": 2}


@pytest.mark.parametrize(
    ("mounts", "file", "frozen", "thawed"),
    [
        (
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
            "sys/fs/cgroup/a/cgroup.events",
            "populated 1\nfrozen 1\n",
            "populated 1\nfrozen 0\n",
        ),
        (
            "cgroup /f cgroup rw,freezer 0 0\ncgroup /c cgroup rw,cpuacct 0 0\n",
            "f/a/freezer.state",
            "FROZEN\n",
            "THAWED\n",
        ),
    ],
    ids=["v2", "v1"],
)
def test_whether_its_tasks_are_stopped(
    tmp_path: Path, mounts: str, file: str, frozen: str, thawed: str
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(mounts)
    (tmp_path / "c").mkdir()
    state = tmp_path / file
    state.parent.mkdir(parents=True)
    state.write_text(frozen)
    reader = _reader(tmp_path)
    known = reader.read_seldom("/a")
    assert known["frozen"] == 1
    state.write_text(thawed)
    assert reader.read_often("/a", known)["frozen"] == 0  # it ran again
    assert reader.read_seldom("/a")["frozen"] == 0
    assert "frozen" not in reader.read_often("/a", {})
    assert "frozen" not in reader.read_seldom("/gone")
