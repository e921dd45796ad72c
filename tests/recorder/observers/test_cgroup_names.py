from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent
from nodescope.recorder.observers.cgroup_names import NamesObserver
from nodescope.records.node_tables import CgroupNameRow
from nodescope.sources.places import Places

ID = "3f2a" * 16
UID = "0f9d3c1e-72a4-4f0b-9c55-7d1f0a2b3c4d"


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A kubelet with the cgroupfs driver on v1, units in systemd's own hierarchy."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text(
        "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
        "cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n"
    )
    for folder in (
        f"memory/kubepods/burstable/pod{UID}/{ID}",
        "memory/system.slice/kubelet.service",
        "systemd/system.slice/kubelet.service",
        "systemd/system.slice/ssh.service",
        "cpu/not-looked-at.slice",
    ):
        (tmp_path / "sys/fs/cgroup" / folder).mkdir(parents=True)
    (tmp_path / f"var/log/pods/default_web-0_{UID}").mkdir(parents=True)
    return tmp_path


def _rows(observer: NamesObserver) -> dict[str, CgroupNameRow]:
    return {row.cgroup: row for row in observer.observe(7).rows_of(CgroupNameRow)}


def test_everything_is_named_once(node: Path) -> None:
    observer = NamesObserver(Places(node))
    observer.begin_segment()
    rows = _rows(observer)
    assert sorted(rows) == [
        f"/kubepods/burstable/pod{UID}",
        f"/kubepods/burstable/pod{UID}/{ID}",
        "/system.slice",
        "/system.slice/kubelet.service",
        "/system.slice/ssh.service",
    ]
    pod = rows[f"/kubepods/burstable/pod{UID}/{ID}"]
    assert (pod.kind, pod.namespace, pod.pod, pod.container_id) == (
        "container", "default", "web-0", ID,
    )  # fmt: skip
    assert rows["/system.slice/ssh.service"].unit == "ssh.service"
    assert _rows(observer) == {}
    observer.begin_segment()
    assert len(_rows(observer)) == 5
    observer.close()


def test_what_is_new_or_gets_a_name_is_said(node: Path) -> None:
    observer = NamesObserver(Places(node))
    _rows(observer)
    (node / "sys/fs/cgroup/systemd/system.slice/new.service").mkdir()
    (node / "var/log/containers").mkdir()
    (node / f"var/log/containers/web-0_default_app-{ID}.log").touch()
    rows = _rows(observer)
    assert sorted(rows) == [
        f"/kubepods/burstable/pod{UID}/{ID}",
        "/system.slice/new.service",
    ]
    assert rows[f"/kubepods/burstable/pod{UID}/{ID}"].container == "app"


def test_without_cgroups_there_is_nothing_to_name(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        NamesObserver(Places(tmp_path)).observe(0)
