"""Live cgroups of recorded nodes: what each uses, and whose it is."""

from __future__ import annotations

import pytest
from tests.nodes.recorded import GUEST, HYBRID, KUBELET_V1, WHOLE, WITH_PODS, Node

from nodescope.recorder.observers.cgroup_names import NamesObserver
from nodescope.recorder.observers.cgroups import CgroupsObserver
from nodescope.records.node_tables import CgroupNameRow, CgroupRow
from nodescope.sources.cgroups.hierarchies import read_hierarchies, walk
from nodescope.sources.cgroups.owner_by_path import CgroupOwner, find_owner
from nodescope.sources.cgroups.usage import UsageReader
from nodescope.sources.node.pressure import read_pressure_file

TICKS = 100


def _reader(node: Node) -> UsageReader:
    return UsageReader(read_hierarchies(node.places), TICKS)


def _usage(reader: UsageReader, path: str) -> dict[str, int | None]:
    values = reader.read_cpu(path)
    values |= reader.read_seldom(path)
    return values | reader.read_often(path, {})


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_what_a_cgroup_was_given_and_uses(node: Node) -> None:
    reader = _reader(node)
    for path, truth in node.truth["usage"].items():
        found = _usage(reader, path)
        assert found["memory_limit_bytes"] == truth["memory_limit_bytes"]
        assert found["tasks"] == truth["tasks"]
        assert found["oom_kills"] == truth["oom_kills"]


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_cpu_time_is_what_others_count(node: Node) -> None:
    reader = _reader(node)
    for path, truth in node.truth["usage"].items():
        found = _usage(reader, path)
        assert (found["usage_us"] or 0) / 1e6 == pytest.approx(truth["cpu_seconds"], rel=0.1)
        by_mode = (found["user_us"] or 0) + (found["system_us"] or 0)
        assert by_mode == pytest.approx(found["usage_us"], abs=3e6 / TICKS)
        assert bool(found["throttled"]) == bool(found["throttled_us"]) == truth["throttled"]
        assert (found["periods"] or 0) >= (found["throttled"] or 0)


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_memory_is_what_others_count(node: Node) -> None:
    reader = _reader(node)
    for path, truth in node.truth["usage"].items():
        found = _usage(reader, path)["memory_bytes"] or 0
        if "memory_bytes" in truth:  # asked of systemd a moment later
            assert found == pytest.approx(truth["memory_bytes"], abs=64 * 4096)
        else:
            assert truth["least_memory_bytes"] <= found <= truth["memory_limit_bytes"]


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_who_was_killed_had_met_the_limit(node: Node) -> None:
    reader = _reader(node)
    killed = [path for path, truth in node.truth["usage"].items() if truth["oom_kills"]]
    assert len(killed) == 1
    assert (_usage(reader, killed[0])["memory_limit_hits"] or 0) > 0


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_every_cgroup_that_is_there_is_told(node: Node) -> None:
    said = CgroupsObserver(node.places).observe(1).rows_of(CgroupRow)
    with_memory = [row for row in said if row.memory_bytes is not None]
    # The root of v2 does not say how much it uses.
    assert len(with_memory) == node.truth["visible"] - node.memory.is_v2


@pytest.mark.parametrize("node", [GUEST], indirect=True)
def test_who_met_a_limit_waited_for_it(node: Node) -> None:
    limited, fine = "/system.slice/limited.service", "/system.slice/fine.service"
    assert node.truth["usage"][limited]["throttled"]
    throttled_us = _usage(_reader(node), limited)["throttled_us"] or 0
    assert _waited_us(node, limited, "cpu") >= throttled_us > 0
    assert _waited_us(node, limited, "memory") > 0  # it was killed for memory
    assert _waited_us(node, fine, "memory") == 0


def _waited_us(node: Node, path: str, resource: str) -> int:
    file = _reader(node).pressure_path(path, resource)
    assert file is not None
    return read_pressure_file(file).some_us or 0


@pytest.mark.parametrize("node", WITH_PODS, indirect=True)
def test_containers_are_those_that_run_and_no_others(node: Node) -> None:
    owners = {path: find_owner(path) for path, _ in walk(node.memory.mount)}
    found = {path: owner for path, owner in owners.items() if owner and owner.kind == "container"}
    assert {path: (owner.pod_uid, owner.container_id) for path, owner in found.items()} == {
        path: (truth["pod_uid"], truth["container_id"])
        for path, truth in node.truth["containers"].items()
    }
    pods = {owner.pod_uid for owner in owners.values() if owner and owner.kind == "pod"}
    assert pods == {truth["pod_uid"] for truth in node.truth["containers"].values()}


@pytest.mark.parametrize("node", WITH_PODS, indirect=True)
def test_pods_and_containers_have_their_names(node: Node) -> None:
    rows = {row.cgroup: row for row in NamesObserver(node.places).observe(1).rows_of(CgroupNameRow)}
    for path, truth in node.truth["containers"].items():
        assert _named(rows[path]) == truth
        pod = rows[path.rpartition("/")[0]]
        assert (pod.kind, pod.namespace, pod.pod) == (
            "pod",
            truth["namespace"],
            truth["pod"],
        )


def _named(row: CgroupNameRow) -> dict[str, str | None]:
    return {
        "namespace": row.namespace,
        "pod": row.pod,
        "container": row.container,
        "pod_uid": row.pod_uid,
        "container_id": row.container_id,
        "runtime": row.runtime,
    }


@pytest.mark.parametrize("node", [GUEST], indirect=True)
def test_services_are_units(node: Node) -> None:
    running = {
        said["ControlGroup"]: unit
        for unit, said in node.truth["units"].items()
        if said["ControlGroup"]
    }
    assert len(running) >= 3
    paths = {path for path, _ in walk(node.memory.mount)}
    for path, unit in running.items():
        assert path in paths
        assert find_owner(path) == CgroupOwner("unit", "systemd", unit)


@pytest.mark.parametrize("node", [HYBRID, KUBELET_V1], indirect=True)
def test_what_follows_no_custom_is_nobodys(node: Node) -> None:
    own = [path for path, _ in walk(node.memory.mount) if path.startswith(("/sessions", "/pods"))]
    assert len(own) >= 3
    assert [path for path in own if find_owner(path) is not None] == []
