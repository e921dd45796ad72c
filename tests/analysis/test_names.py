from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.conftest import SAMPLES, Sample, write_archive

from nodescope.analysis.filter import Filter
from nodescope.analysis.names import find_named, is_within
from nodescope.archive.reader import Archive
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns

POD = "/kubepods/burstable/pod1"
RAN = [
    Sample(1.0, 0, 1, "app", "main", f"{POD}/x"),
    Sample(2.0, 0, 2, "proxy", "main", f"{POD}/y/inner"),
    Sample(3.0, 0, 3, "other", "main", "/kubepods/burstable/pod10/z"),
    Sample(4.0, 0, 4, "kubelet", "main", "/system.slice/kubelet.service"),
]
NAMES: dict[str, list[object]] = {
    "time_ns": [1_000 * SECOND_NS] * 3,
    "cgroup": [POD, f"{POD}/x", f"{POD}/y"],
    "kind": ["pod", "container", "container"],
    "namespace": ["default", "default", None],
    "pod": ["web-0", "web-0", None],
    "container": [None, "app", "proxy"],
}


@pytest.fixture
def named(tmp_path: Path) -> SampleColumns:
    archive = write_archive(tmp_path / "a", [RAN], {"cgroup_names": NAMES})
    return SampleColumns(archive.segments()[0])


def _pids(columns: SampleColumns, *texts: str) -> list[int]:
    passing = Filter(cgroups=texts).samples(columns)
    return sorted(columns.pid[passing].tolist())


@pytest.mark.parametrize(
    ("text", "pids"),
    [
        ("web-0", [1, 2]),  # the pod's cgroup, and all below it
        ("default/web-0", [1, 2]),
        ("web-*", [1, 2]),
        ("app", [1]),
        ("proxy", [2]),
        ("kubelet.service", [4]),  # part of a path, as ever
        ("pod1", [1, 2, 3]),
        ("nobody", []),
    ],
)
def test_samples_by_the_name_of_a_pod_or_container(
    named: SampleColumns, text: str, pids: list[int]
) -> None:
    assert _pids(named, text) == pids


def test_any_of_several(named: SampleColumns) -> None:
    assert _pids(named, "app", "kubelet") == [1, 4]


def test_a_segment_without_names_has_none(tmp_path: Path) -> None:
    archive: Archive = write_archive(tmp_path / "a", [SAMPLES])
    assert find_named(archive.segments()[0], ["web-0"]) == ()


def test_below_is_not_beside() -> None:
    assert is_within("/a/b", ["/a"])
    assert is_within("/a", ["/a"])
    assert not is_within("/ab", ["/a"])
