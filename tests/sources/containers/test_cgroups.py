"""Cgroups of containers: seen, expected, and placed in this machine's tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.sources.containers.cgroups import (
    Whereabouts,
    docker_cgroup,
    oci_cgroup,
    parent_of,
    parse_process_cgroup,
    slice_path,
)

V1 = b"9:name=systemd:/docker/abc\n4:memory:/docker/abc\n1:cpu:/docker/abc\n0::/\n"
HYBRID = b"4:memory:/docker/abc\n0::/system.slice/docker.service\n"
POD_SLICE = "/kubepods.slice/kubepods-pod1_2.slice"
V2 = b"0::/system.slice/docker-abc.scope\n"


def test_the_path_that_bears_the_id_is_the_containers() -> None:
    assert parse_process_cgroup(V1, "abc") == "/docker/abc"
    assert parse_process_cgroup(HYBRID, "abc") == "/docker/abc"
    assert parse_process_cgroup(V2, "abc") == "/system.slice/docker-abc.scope"


def test_without_the_id_the_default_hierarchy_counts() -> None:
    assert parse_process_cgroup(HYBRID, "zzz") == "/system.slice/docker.service"
    assert parse_process_cgroup(b"0::/\n", "abc") is None
    assert parse_process_cgroup(b"\xff\nnonsense\n:::", "abc") is None


@pytest.mark.parametrize(
    ("said", "cgroup"),
    [
        ("/kubepods/burstable/pod1/abc", "/kubepods/burstable/pod1/abc"),
        ("default/abc", "/default/abc"),
        ("kubepods-pod1_2.slice:cri-containerd:abc", f"{POD_SLICE}/cri-containerd-abc.scope"),
        ("system.slice:docker:abc", "/system.slice/docker-abc.scope"),
        (":libpod:abc", "/system.slice/libpod-abc.scope"),
        ("", None),
        (None, None),
    ],
)
def test_where_an_oci_spec_leads(said: str | None, cgroup: str | None) -> None:
    assert oci_cgroup(said) == cgroup


def test_where_docker_puts_them() -> None:
    assert docker_cgroup("abc", None, "cgroupfs") == "/docker/abc"
    assert docker_cgroup("abc", "/ecs/task", "cgroupfs") == "/ecs/task/abc"
    assert docker_cgroup("abc", None, "systemd") == "/system.slice/docker-abc.scope"
    assert docker_cgroup("abc", "a-b.slice", "systemd") == "/a.slice/a-b.slice/docker-abc.scope"
    assert docker_cgroup("abc", None, None) is None
    assert slice_path("-.slice") == ""
    assert parent_of("/docker/abc") == "/docker"
    assert parent_of("/") is None


def test_a_tree_further_down_is_learnt_from_what_lives(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_bytes(b"0::/guest/docker/abc\n")
    whereabouts = Whereabouts(tmp_path)
    assert whereabouts.find("xyz", None, "/docker/xyz") == "/docker/xyz"
    assert whereabouts.find("abc", 7, "/docker/abc") == "/guest/docker/abc"
    assert whereabouts.find("xyz", None, "/docker/xyz") == "/guest/docker/xyz"
    assert whereabouts.find("xyz", 8, None) is None


def test_a_pid_that_is_somebody_elses_here_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_bytes(b"0::/system.slice/cron.service\n")
    assert Whereabouts(tmp_path).find("abc", 7, "/docker/abc") == "/docker/abc"
