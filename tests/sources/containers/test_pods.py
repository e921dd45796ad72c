"""Pods by the kubelet's folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent
from nodescope.sources.containers.container import Container
from nodescope.sources.containers.pods import (
    Pod,
    PodIndex,
    Pods,
    parse_pod_folder,
    parse_restarts,
)
from nodescope.sources.places import Places

UID = "0c1fd6e2-4e54-4a0c-9a53-f1c1d4a2b7aa"
LINE = b"2026-11-16T12:13:09.358193749Z stdout F hello\n"


def write_log(root: Path, pod: str, container: str, restarts: int) -> Path:
    path = root / "var/log/pods" / pod / container / f"{restarts}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(LINE)
    return path


@pytest.mark.parametrize("name", ["", "a_b", "a__c", "a_b_c_d", "lost+found"])
def test_folders_of_something_else(name: str) -> None:
    assert parse_pod_folder(name) is None


def test_restarts_are_the_largest_number() -> None:
    assert parse_pod_folder(f"shop_web-0_{UID}") == Pod("shop", "web-0", UID)
    assert parse_restarts(["0.log", "12.log", "7.log", "12.log.20261116-1.gz"]) == 12
    assert parse_restarts([]) is None
    assert parse_restarts(["x.log", "².log", "9" * 30 + ".log", ".log"]) is None


def test_folders_are_read_again_when_they_changed(tmp_path: Path) -> None:
    pods = Pods(Places(root=tmp_path))
    with pytest.raises(SourceAbsent):
        pods.read()
    write_log(tmp_path, f"shop_web-0_{UID}", "app", 2)
    (tmp_path / "var/log/pods/stray").write_text("")
    (first,) = pods.read()
    assert (first.name, first.restarts, first.started_wall_ns) == ("app", 2, 1794831189358193749)
    assert pods.read()[0] is first
    write_log(tmp_path, f"shop_web-0_{UID}", "app", 3)
    (second,) = pods.read()
    assert second.restarts == 3
    assert second.container.subject == "shop/web-0/app"


def test_a_runtimes_container_gets_its_pods_names(tmp_path: Path) -> None:
    write_log(tmp_path, f"shop_web-0_{UID}", "app", 2)
    index = PodIndex(Pods(Places(root=tmp_path)).read())
    bare = Container("containerd", "abc", name="abc", cgroup=f"/kubepods/pod{UID}/abc")
    named = index.named(bare)
    assert (named.subject, named.restarts) == ("shop/web-0/app", 2)
    slice_ = f"/guest/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice"
    by_systemd = Container("containerd", "abc", cgroup=f"{slice_}/cri-containerd-abc.scope")
    assert index.named(by_systemd).subject == "shop/web-0/app"
    labelled = Container("containerd", "abc", name="app", pod="web-0", namespace="shop", restarts=1)
    assert index.named(labelled).restarts == 2
    other = Container("containerd", "abc", name="app", pod="web-0", namespace="bank", restarts=1)
    assert index.named(other) is other
    stranger = Container("docker", "abc", name="x", cgroup="/docker/abc")
    assert index.named(stranger) is stranger


def test_of_two_containers_in_a_pod_none_is_named_by_guess(tmp_path: Path) -> None:
    for name in ("app", "proxy"):
        write_log(tmp_path, f"shop_web-0_{UID}", name, 0)
    index = PodIndex(Pods(Places(root=tmp_path)).read())
    named = index.named(
        Container("containerd", "abc", name="abc", cgroup=f"/kubepods/pod{UID}/abc")
    )
    assert (named.name, named.pod) == ("abc", "web-0")
