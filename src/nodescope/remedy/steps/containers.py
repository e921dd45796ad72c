"""Steps that stop a container by its own engine and keep the engine from starting it again."""

from __future__ import annotations

import time

from nodescope.records.action import Action, Target
from nodescope.remedy.engine import open_engine
from nodescope.remedy.guard.container_makers import ContainerMaker, find_maker
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.proposals import Proposal
from nodescope.remedy.steps.expansion import Expansion, refuse
from nodescope.remedy.steps.units import expand_stop_unit
from nodescope.sources.containers.runtimes import Runtimes

_ENGINES = ("docker", "podman")  # that stop a container by its name and keep a restart policy
STOP_TIMEOUT_S = 30


def expand_stop_container(proposal: Proposal, node: NodeAccess) -> Expansion:
    """Return the steps that stop a container: first its restart policy, then itself."""
    named = proposal.action.target
    if named is None or named.name is None:
        return Expansion(cannot=("the container behind it is not known by name",))
    target = named if named.runtime or named.within else find_container(named.name, node)
    if target is None:
        return refuse(named, f"no runtime on this node knows a container {named.name}")
    if target.within:
        return refuse(
            target,
            f"it belongs to pod {target.within}: whatever declares the pod makes it again; "
            "change it there (`kubectl`), not on the node",
        )
    if target.runtime not in _ENGINES:
        of = f"its runtime, {target.runtime}," if target.runtime else "its runtime"
        return refuse(target, f"{of} keeps no restart policy: stop what makes the container")
    maker = _find_maker(target, node)
    if maker is not None:
        return _stop_maker(maker, target, proposal, node)
    name, engine = target.name or "", target.runtime
    policy = PlanStep(
        "set_restart_policy", target, "so that its engine does not start it again",
        {"policy": "no"}, (f"restart policy of container {name}: → no",),
        (engine, "update", "--restart=no", name), "set the policy it had",
    )  # fmt: skip
    stop = PlanStep(
        "stop_container", target, proposal.why, {"timeout_s": str(STOP_TIMEOUT_S)},
        (f"container {name}: → stopped",),
        (engine, "stop", "--time", str(STOP_TIMEOUT_S), name), "start it again, if it ran",
    )  # fmt: skip
    return Expansion((policy, stop))


def _find_maker(target: Target, node: NodeAccess) -> ContainerMaker | None:
    """Return what makes the container anew, also if none is there between two rounds."""
    engine = open_engine(node, target.runtime)
    name = target.name or ""
    return find_maker(engine.inspect(name) or {"Name": name}, engine, node)


def _stop_maker(
    maker: ContainerMaker, target: Target, proposal: Proposal, node: NodeAccess
) -> Expansion:
    """Return the steps that stop what makes a container anew; refuse if that is not known."""
    if maker.target is None or maker.target == target:
        return refuse(target, maker.why)
    why = f"it makes container {target.name} anew, again and again: {proposal.why}"
    if maker.target.kind == "unit":
        return expand_stop_unit(Proposal(Action("stop_unit", maker.target), why), node)
    return expand_stop_container(Proposal(Action("stop_container", maker.target), why), node)


def find_container(name: str, node: NodeAccess) -> Target | None:
    """Return the container of a name or id as a target; None if no runtime knows it."""
    runtimes = Runtimes(node.engine_places)
    try:
        runtimes.poll(time.time_ns())
        for container in runtimes.containers.values():
            if name in (container.name, container.id, container.id[:12]):
                pod = f"{container.namespace or 'default'}/{container.pod}"
                within = pod if container.pod else None
                return Target("container", container.name or name, within, container.runtime)
    finally:
        runtimes.close()
    return None
