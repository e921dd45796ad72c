"""Memory cgroups of recorded nodes: counted, by parent, and what dying ones hold."""

from __future__ import annotations

import pytest
from tests.nodes.recorded import EVERY, GUEST, HYBRID, KUBELET_V1, PLAIN_GUEST, Node

from nodescope.sources.memory_cgroups.counts import Count, Counting
from nodescope.sources.memory_cgroups.residual import read_parents
from nodescope.sources.memory_cgroups.survey import take_look

PAGE = 4096
LAG_BYTES = 2 * 64 * PAGE  # what the kernel's sums of two cores may lag behind


@pytest.mark.parametrize("node", EVERY, indirect=True)
def test_tracked_visible_and_dying(node: Node) -> None:
    truth = node.truth
    counted = Count(truth["version"], truth["tracked"], truth["visible"], truth["dying"])
    assert Counting(node.memory).read() == counted
    assert node.memory.whole


@pytest.mark.parametrize("node", EVERY, indirect=True)
def test_what_dying_ones_hold_by_parent(node: Node) -> None:
    # Without their number nobody is left out for having too few.
    dying = node.truth["dying"] if node.memory.is_v2 else None
    found = {each.path: each.held for each in read_parents(node.memory, dying)}
    for parent, held in node.truth["held_bytes"].items():
        assert found[parent].get("shmem", 0) == held.get("shmem", 0)
        assert abs(found[parent].get("file", 0) - held.get("file", 0)) <= LAG_BYTES


@pytest.mark.parametrize("node", [GUEST, PLAIN_GUEST], indirect=True)
def test_v2_counts_exactly_and_names_nobody_else(node: Node) -> None:
    found = read_parents(node.memory, node.truth["dying"])
    assert {each.path: each.dying for each in found} == node.truth["dying_by_parent"]
    assert all(each.exact for each in found)


# Two live containers are in the pod, and what nine dead ones hold are nine pages, so few
# that it is thought to be counters that lag; kernel memory would pay for fifteen.
@pytest.mark.parametrize("node", [HYBRID, KUBELET_V1], indirect=True)
def test_v1_names_those_that_were_made(node: Node) -> None:
    found = {each.path: each for each in read_parents(node.memory, node.truth["dying"])}
    for parent, made in node.truth["dying_by_parent"].items():
        assert found[parent].dying == pytest.approx(made, abs=1)
        assert (found[parent].least or 0) <= made <= (found[parent].most or 0)
    assert sum(each.dying or 0 for each in found.values()) <= node.truth["dying"]


@pytest.mark.parametrize("node", EVERY, indirect=True)
def test_a_look_knows_the_node_it_looks_at(node: Node) -> None:
    look = take_look(node.memory, apart_s=0.0)
    assert look.count.dying == node.truth["dying"]
    if "cpus" in node.truth:
        assert look.possible_cpus == node.truth["cpus"]
        assert look.memory_bytes == node.truth["memory_bytes"]
        assert look.walk is not None
        assert look.walk.file == f"{node.memory.mount}/memory.numa_stat"
        reclaim = "memory.reclaim" if node.memory.is_v2 else "memory.force_empty"
        assert look.reclaim_file == reclaim


@pytest.mark.parametrize("node", [HYBRID], indirect=True)
def test_bounds_are_numbers(node: Node) -> None:
    for parent in read_parents(node.memory, node.truth["dying"]):
        assert type(parent.least) is type(parent.most) is int
