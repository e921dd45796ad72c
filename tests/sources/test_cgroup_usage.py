from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import cgroup_nodes

from nodescope.errors import SourceAbsent
from nodescope.sources.cgroup_tree import read_hierarchies
from nodescope.sources.cgroup_usage import Absent, UsageReader, parse_flat, parse_number
from nodescope.sources.places import Places

EVERYTHING = {
    "usage_us": 48_211_334,
    "user_us": 30_120_000,
    "periods": 100,
    "throttled": 7,
    "throttled_us": 93_000,
    "memory_bytes": 20_877_312,
    "memory_limit_bytes": None,
    "oom_kills": 2,
    "tasks": 12,
}


def _reader(root: Path) -> UsageReader:
    return UsageReader(read_hierarchies(Places(root)), 100)


def test_v1_is_read_from_every_hierarchy(tmp_path: Path) -> None:
    reader = _reader(cgroup_nodes.hybrid(tmp_path, "/docker/a"))
    values = reader.read_cpu("/docker/a")
    values |= reader.read_seldom("/docker/a") | reader.read_often("/docker/a", values)
    assert values == EVERYTHING | {"system_us": 17_900_000}


def test_v2_is_read_from_one(tmp_path: Path) -> None:
    reader = _reader(cgroup_nodes.unified(tmp_path, "/system.slice/a.service"))
    values = reader.read_cpu("/system.slice/a.service")
    values |= reader.read_seldom("/system.slice/a.service")
    values |= reader.read_often("/system.slice/a.service", values)
    assert values == EVERYTHING | {"system_us": 18_091_334, "memory_limit_hits": 3}


@pytest.mark.parametrize("node", [cgroup_nodes.hybrid, cgroup_nodes.unified])
@pytest.mark.parametrize("driver", cgroup_nodes.KUBELET)
def test_a_container_of_the_kubelet_by_both_drivers(
    tmp_path: Path, node: Callable[..., Path], driver: str
) -> None:
    path = cgroup_nodes.KUBELET[driver]
    reader = _reader(node(tmp_path, path))
    assert reader.read_cpu(path)["usage_us"] == 48_211_334
    assert reader.read_often(path, {})["memory_bytes"] == 20_877_312


def test_a_limit_of_v1_is_told_and_how_often_it_was_met(tmp_path: Path) -> None:
    root = cgroup_nodes.hybrid(tmp_path, "/a")
    folder = root / "sys/fs/cgroup/memory/a"
    (folder / "memory.limit_in_bytes").write_text("104857600\n")
    (folder / "memory.failcnt").write_text("33\n")
    values = _reader(root).read_seldom("/a")
    assert (values["memory_limit_bytes"], values["memory_limit_hits"]) == (104_857_600, 33)
    (folder / "memory.failcnt").write_text("34\n")
    assert _reader(root).read_often("/a", values)["memory_limit_hits"] == 34


def test_cpu_and_cpuacct_may_be_one_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    )
    files = cgroup_nodes.V1_FILES["cpu"] | cgroup_nodes.V1_FILES["cpuacct"]
    cgroup_nodes.write(tmp_path / "sys/fs/cgroup/cpu,cpuacct/a", files)
    reader = _reader(tmp_path)
    assert reader.others == []
    assert reader.read_cpu("/a")["usage_us"] == 48_211_334
    assert reader.read_often("/a", {}).keys() >= {"throttled", "user_us"}
    assert "memory_bytes" not in reader.read_often("/a", {})


def test_a_cgroup_that_is_gone_is_absent(tmp_path: Path) -> None:
    reader = _reader(cgroup_nodes.hybrid(tmp_path))
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
    reader = _reader(cgroup_nodes.unified(tmp_path, "/a"))
    path = reader.pressure_path("/a", "io")
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
