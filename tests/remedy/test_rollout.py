from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.remedy.full_plan import make_plan

from nodescope.remedy.elsewhere.kubernetes import parse_nodes, render_kubernetes
from nodescope.remedy.elsewhere.rollout import RolloutNode, budget_of, plan_rollout

NODES = st.lists(
    st.builds(
        RolloutNode,
        name=st.integers(0, 10_000).map("node-{}".format),
        zone=st.sampled_from("abc"),
        cause=st.sampled_from(("", "leak", "driver")),
        ready=st.booleans(),
        cordoned_by=st.sampled_from(("", "", "ann")),
        lease=st.sampled_from(("", "", "other rollout")),
    ),
    unique_by=lambda node: node.name,
    max_size=60,
)


@given(nodes=NODES, share=st.floats(0.01, 1.0))
def test_every_node_is_in_one_wave_or_blocked_for_a_reason(
    nodes: list[RolloutNode], share: float
) -> None:
    rollout = plan_rollout(nodes, share)
    taken = [node.name for wave in rollout.waves for node in wave]
    assert sorted([*taken, *(each.name for each in rollout.blocked)]) == sorted(
        node.name for node in nodes
    )
    assert all(each.reason for each in rollout.blocked)


@given(nodes=NODES, share=st.floats(0.01, 1.0))
def test_no_wave_takes_a_whole_zone_or_exceeds_a_budget(
    nodes: list[RolloutNode], share: float
) -> None:
    zones, causes = Counter(n.zone for n in nodes), Counter(n.cause for n in nodes)
    for wave in plan_rollout(nodes, share).waves:
        for zone, count in Counter(n.zone for n in wave).items():
            assert count <= budget_of(zones[zone], share)
            assert count < zones[zone]
        for cause, count in Counter(n.cause for n in wave).items():
            assert count <= budget_of(causes[cause], share)


def test_the_first_wave_is_one_node_and_a_pool_of_three_goes_one_by_one() -> None:
    rollout = plan_rollout([RolloutNode(f"n{at}", "a") for at in range(3)], 0.5)
    assert [len(wave) for wave in rollout.waves] == [1, 1, 1]


def test_a_persons_cordon_wins() -> None:
    nodes = [RolloutNode("n1", "a", cordoned_by="ann"), RolloutNode("n2", "a")]
    rollout = plan_rollout(nodes)
    assert [node.name for wave in rollout.waves for node in wave] == ["n2"]
    assert "ann" in rollout.blocked[0].reason


def _node(name: str, *, cordoned: bool = False) -> dict[str, object]:
    return {
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a"}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_nodes_of_kubectl_become_suspended_jobs_by_wave() -> None:
    items = [_node("n1"), _node("n2", cordoned=True), _node("n3")]
    nodes = parse_nodes(json.loads(json.dumps({"items": items})))
    plan = make_plan()
    listed = json.loads(render_kubernetes(plan, plan_rollout(nodes), "image:1", "nodescope"))
    jobs = [item for item in listed["items"] if item["kind"] == "Job"]
    assert [job["spec"]["template"]["spec"]["nodeName"] for job in jobs] == ["n1", "n3"]
    assert all(job["spec"]["suspend"] for job in jobs)
    assert all(len(item["metadata"]["name"]) <= 63 for item in listed["items"])
    assert [item["kind"] for item in listed["items"]] == ["Lease", "Job", "Lease", "Job"]
