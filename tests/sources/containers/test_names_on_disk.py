from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nodescope.errors import MalformedSource
from nodescope.sources.cgroups.owner_by_path import CgroupOwner
from nodescope.sources.containers.names_on_disk import (
    NOTHING,
    ContainerNames,
    KnownNames,
    parse_container_logs,
    parse_docker,
    parse_pod_folders,
    parse_storage,
)
from nodescope.sources.places import Places

ID = "3f2a" * 16
UID = "0f9d3c1e-72a4-4f0b-9c55-7d1f0a2b3c4d"
CONTAINER = CgroupOwner("container", None, None, UID, ID)


def _write(root: Path, path: str, content: Any) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(json.dumps(content))


def _names(root: Path) -> ContainerNames:
    names = ContainerNames(Places(root))
    names.begin()
    return names


def test_pods_by_uid() -> None:
    found = parse_pod_folders([f"kube-system_coredns-7db6d8ff4d-x2x9k_{UID}", "lost+found"])
    assert found == {UID: KnownNames(None, "kube-system", "coredns-7db6d8ff4d-x2x9k", None)}


def test_containers_by_id() -> None:
    found = parse_container_logs([f"web-0_default_my-app-{ID}.log", "x.log", f"a_b_{ID}.log"])
    assert found == {ID: KnownNames(None, "default", "web-0", "my-app")}


def test_storage_lists_names() -> None:
    listed = [{"id": ID, "names": ["web"]}, {"id": "x"}, 3, {"id": "y", "names": [4]}]
    assert parse_storage(json.dumps(listed).encode(), "x") == {ID: KnownNames(container="web")}
    assert parse_storage(b"{}", "x") == {}
    with pytest.raises(MalformedSource):
        parse_storage(b"{", "x")


def test_docker_says_its_name_or_the_kubelets() -> None:
    assert parse_docker(b'{"Name": "/web"}', "x") == KnownNames("docker", None, None, "web")
    labels = {"io.kubernetes.pod.name": "p", "io.kubernetes.pod.namespace": "n",
              "io.kubernetes.container.name": "c"}  # fmt: skip
    config = {"Name": "/k8s_c_p_n", "Config": {"Labels": labels}}
    assert parse_docker(json.dumps(config).encode(), "x") == KnownNames("docker", "n", "p", "c")
    assert parse_docker(b'{"Name": 4, "Config": []}', "x") == KnownNames("docker")


def test_a_node_without_runtimes_knows_no_names(tmp_path: Path) -> None:
    assert _names(tmp_path).find(CONTAINER) == NOTHING
    assert _names(tmp_path).find(CgroupOwner("unit", "systemd", "a.service")) == NOTHING


def test_the_pod_of_a_container_comes_from_the_log_folder(tmp_path: Path) -> None:
    (tmp_path / f"var/log/pods/default_web-0_{UID}").mkdir(parents=True)
    names = _names(tmp_path)
    assert names.find(CgroupOwner("pod", pod_uid=UID)) == KnownNames(None, "default", "web-0", None)
    assert names.find(CONTAINER) == KnownNames(None, "default", "web-0", None)


def test_a_log_of_the_kubelet_names_the_container(tmp_path: Path) -> None:
    (tmp_path / "var/log/containers").mkdir(parents=True)
    (tmp_path / f"var/log/containers/web-0_default_app-{ID}.log").touch()
    assert _names(tmp_path).find(CONTAINER) == KnownNames(None, "default", "web-0", "app")


@pytest.mark.parametrize(
    ("path", "annotations", "runtime"),
    [
        (
            f"run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json",
            {
                "io.kubernetes.cri.container-name": "app",
                "io.kubernetes.cri.sandbox-name": "web-0",
                "io.kubernetes.cri.sandbox-namespace": "default",
            },
            "containerd",
        ),
        (
            f"run/containers/storage/overlay-containers/{ID}/userdata/config.json",
            {
                "io.kubernetes.container.name": "app",
                "io.kubernetes.pod.name": "web-0",
                "io.kubernetes.pod.namespace": "default",
            },
            "cri-o",
        ),
    ],
)
def test_bundles_name_container_and_pod(
    tmp_path: Path, path: str, annotations: dict[str, str], runtime: str
) -> None:
    _write(tmp_path, path, {"annotations": annotations})
    assert _names(tmp_path).find(CONTAINER) == KnownNames(runtime, "default", "web-0", "app")


def test_podman_by_its_storage(tmp_path: Path) -> None:
    storage = "var/lib/containers/storage/overlay-containers/containers.json"
    _write(tmp_path, storage, [{"id": ID, "names": ["db"]}])
    found = _names(tmp_path).find(CgroupOwner("container", "podman", None, None, ID))
    assert found == KnownNames(container="db")


def test_a_name_is_looked_for_again_and_then_kept(tmp_path: Path) -> None:
    names = _names(tmp_path)
    owner = CgroupOwner("container", "docker", None, None, ID)
    assert names.find(owner) == NOTHING
    path = f"var/lib/docker/containers/{ID}/config.v2.json"
    _write(tmp_path, path, {"Name": "/web"})
    names.begin()
    assert names.find(owner).container == "web"
    os.unlink(tmp_path / path)
    names.begin()
    assert names.find(owner).container == "web"
    names.begin()
    names.begin()  # nobody asked for a whole round
    assert names.find(owner) == NOTHING


def test_a_name_that_is_nowhere_is_not_looked_for_for_ever(tmp_path: Path) -> None:
    names = _names(tmp_path)
    owner = CgroupOwner("container", "docker", None, None, ID)
    for _ in range(6):
        names.begin()
        assert names.find(owner) == NOTHING
    _write(tmp_path, f"var/lib/docker/containers/{ID}/config.v2.json", {"Name": "/late"})
    names.begin()
    assert names.find(owner) == NOTHING
