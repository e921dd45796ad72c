from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.sources.cgroups.owner_by_path import CgroupOwner, find_owner

ID = "3f2a" * 16
UID = "0f9d3c1e-72a4-4f0b-9c55-7d1f0a2b3c4d"
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
HASH = "8e2d1f" * 5 + "ab"  # static pods have a hash for a uid

OWNERS = {
    # kubelet, systemd driver
    f"/kubepods.slice/kubepods-burstable.slice/{SLICE}/cri-containerd-{ID}.scope": CgroupOwner(
        "container", "containerd", f"cri-containerd-{ID}.scope", UID, ID
    ),
    f"/kubepods.slice/kubepods-burstable.slice/{SLICE}/crio-{ID}.scope": CgroupOwner(
        "container", "cri-o", f"crio-{ID}.scope", UID, ID
    ),
    f"/kubepods.slice/kubepods-burstable.slice/{SLICE}/crio-conmon-{ID}.scope": CgroupOwner(
        "pod", None, f"crio-conmon-{ID}.scope", UID, None
    ),
    f"/kubepods.slice/kubepods-burstable.slice/{SLICE}": CgroupOwner("pod", None, SLICE, UID),
    f"/kubepods.slice/kubepods-pod{HASH}.slice/docker-{ID}.scope": CgroupOwner(
        "container", "docker", f"docker-{ID}.scope", HASH, ID
    ),
    "/kubepods.slice": CgroupOwner("slice", "systemd", "kubepods.slice"),
    # kubelet, cgroupfs driver
    f"/kubepods/burstable/pod{UID}/{ID}": CgroupOwner("container", None, None, UID, ID),
    f"/kubepods/pod{HASH}/{ID}/inner": CgroupOwner("container", None, None, HASH, ID),
    f"/kubepods/besteffort/pod{UID}": CgroupOwner("pod", None, None, UID),
    f"/kubepods/pod{UID}/crio-{ID}": CgroupOwner("container", "cri-o", None, UID, ID),
    "/kubepods/besteffort": None,
    # containerd told to use a path it did not expect
    f"/system.slice/containerd.service/{SLICE}:cri-containerd:{ID}": CgroupOwner(
        "container", "containerd", None, UID, ID
    ),
    f"/system.slice/{SLICE}:cri-containerd:{ID}/inner": CgroupOwner(
        "container", "containerd", None, UID, ID
    ),
    f"/system.slice:docker:{ID}": CgroupOwner("container", "docker", None, None, ID),
    # kind, k3d and whoever gives the kubelet a root of its own
    f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-{SLICE}/"
    f"cri-containerd-{ID}.scope": CgroupOwner(
        "container", "containerd", f"cri-containerd-{ID}.scope", UID, ID
    ),
    f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{HASH}.slice": CgroupOwner(
        "pod", None, f"kubelet-kubepods-pod{HASH}.slice", HASH
    ),
    f"/a.slice/a-b.slice/a-b-{SLICE}": CgroupOwner("pod", None, f"a-b-{SLICE}", UID),
    # docker, podman
    f"/docker/{ID}": CgroupOwner("container", "docker", None, None, ID),
    "/docker": None,
    f"/system.slice/docker-{ID}.scope": CgroupOwner(
        "container", "docker", f"docker-{ID}.scope", None, ID
    ),
    f"/machine.slice/libpod-{ID}.scope/container": CgroupOwner(
        "container", "podman", f"libpod-{ID}.scope", None, ID
    ),
    f"/machine.slice/libpod-conmon-{ID}.scope": CgroupOwner(
        "unit", "systemd", f"libpod-conmon-{ID}.scope"
    ),
    f"/libpod_parent/libpod-{ID}": CgroupOwner("container", "podman", None, None, ID),
    # a container with a systemd of its own
    f"/docker/{ID}/system.slice/app.service": CgroupOwner(
        "container", "docker", "app.service", None, ID
    ),
    # a cluster in containers: the innermost counts
    f"/docker/{ID}/kubelet/kubepods/burstable/pod{UID}/{'ab12' * 16}": CgroupOwner(
        "container", None, None, UID, "ab12" * 16
    ),
    # ECS
    f"/ecs/{HASH}/{ID}": CgroupOwner("container", "ecs", None, HASH, ID),
    f"/ecs/{HASH}/{HASH}-0123456789": CgroupOwner(
        "container", "ecs", None, HASH, f"{HASH}-0123456789"
    ),
    f"/ecs/{HASH}": CgroupOwner("pod", "ecs", None, HASH),
    f"/ecstasks.slice/ecstasks-{HASH}.slice/docker-{ID}.scope": CgroupOwner(
        "container", "docker", f"docker-{ID}.scope", HASH, ID
    ),
    # systemd
    "/system.slice/kubelet.service": CgroupOwner("unit", "systemd", "kubelet.service"),
    "/system.slice/docker.service/child": CgroupOwner("unit", "systemd", "docker.service"),
    "/system.slice": CgroupOwner("slice", "systemd", "system.slice"),
    "/init.scope": CgroupOwner("unit", "systemd", "init.scope"),
    "/user.slice/user-1000.slice": CgroupOwner("slice", "systemd", "user-1000.slice"),
    "/user.slice/user-1000.slice/session-3.scope": CgroupOwner(
        "session", "systemd", "session-3.scope"
    ),
    "/user.slice/user-1000.slice/user@1000.service/app.slice": CgroupOwner(
        "unit", "systemd", "user@1000.service"
    ),
    "/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service": CgroupOwner(
        "unit", "systemd", "editor.service"
    ),
    # nobody's
    "/": None,
    "/process_api/b47a6214bcc1268eb578ce603df64fdb": None,
}


@pytest.mark.parametrize("path", OWNERS)
def test_whose_cgroup_it_is(path: str) -> None:
    assert find_owner(path) == OWNERS[path]


@given(st.text())
def test_any_path_has_an_answer(path: str) -> None:
    owner = find_owner(path)
    assert owner is None or owner.kind in ("pod", "container", "unit", "slice", "session")
