"""Steps that raise a limit: of a unit, a container, or a value of the kernel.

A limit is doubled: how much is needed is not known before the limit is away, and twice as much
shows within minutes whether it was the limit. A memory limit is never raised beyond what the
node has free besides what the group uses already.
"""

from __future__ import annotations

from nodescope.errors import SourceError
from nodescope.quantities import format_bytes
from nodescope.records.action import Target
from nodescope.records.action_words import describe_action
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep, Predicted
from nodescope.remedy.proposals import Proposal
from nodescope.remedy.steps.expansion import Expansion, refuse
from nodescope.remedy.steps.kernel_values import read_value, value_step
from nodescope.sources.node.meminfo import read_meminfo
from nodescope.sources.systemd.unit_limits import read_unit_limit

_TIMES = 2
_KEPT_FREE = 0.1  # of the node's memory, whatever a limit is raised to
_PROPERTIES = {"memory": "MemoryMax", "tasks": "TasksMax"}


def expand_raise_limit(proposal: Proposal, node: NodeAccess) -> Expansion:
    """Return the step that raises the limit a proposal names."""
    target = proposal.action.target
    if target is None or target.name is None:
        return Expansion(cannot=(f"by hand: {describe_action(proposal.action)}",))
    if target.kind == "kernel_value":
        return _raise_kernel_value(target.name, proposal, node)
    if target.kind == "unit":
        return _raise_unit(target, proposal, node)
    if target.kind == "container":
        return _raise_container(target, proposal)
    if target.kind == "pod":
        return refuse(target, "a pod's limit is part of its declaration: change it there")
    return Expansion(
        cannot=(f"the limit of {target.name} is raised by whoever made it: no unit sets it",)
    )


def expand_cap_unit(proposal: Proposal) -> Expansion:
    """Return the step that limits the CPU time of a unit."""
    target, percent = proposal.action.target, proposal.action.value or ""
    if target is None or target.name is None or not percent.isdecimal():
        return Expansion(cannot=("the unit to cap is not known by name",))
    name, microseconds = target.name, int(percent) * 10_000  # of CPU time a second
    return Expansion((
        PlanStep(
            "set_unit_property", Target("unit", name), proposal.why,
            {"property": "CPUQuota", "value": str(microseconds)},
            (f"CPUQuota of {name}: → {percent} % of one core, now and after a restart",
             f"/etc/systemd/system.control/{name}.d: a drop-in that systemd writes"),
            ("systemctl", "set-property", "--", name, f"CPUQuota={percent}%"),
            "set the quota it had, and remove what systemd wrote",
        ),
    ))  # fmt: skip


def _raise_unit(target: Target, proposal: Proposal, node: NodeAccess) -> Expansion:
    name, thing = target.name or "", proposal.action.value or "memory"
    prop = _PROPERTIES.get(thing)
    if prop is None:
        return Expansion(cannot=(f"no property of {name} limits {thing}",))
    now = read_unit_limit(node.manager, name, prop)
    if now is None:
        return Expansion(cannot=(f"{name} has no {prop} of its own: a cgroup above limits it",))
    wanted = now * _TIMES
    if thing == "memory" and (short := _memory_short(node, wanted - now)) is not None:
        return Expansion(cannot=(f"the memory limit of {name} is not raised: {short}",))
    return Expansion((_limit_step(name, prop, now, wanted, proposal),))


def _limit_step(name: str, prop: str, now: int, wanted: int, proposal: Proposal) -> PlanStep:
    of_memory = prop == "MemoryMax"
    shown = format_bytes if of_memory else str
    what = "oom_kills" if of_memory else "fork_failures"
    because = f"if {shown(wanted)} suffice; how much it needs is not known while it is limited"
    return PlanStep(
        "set_unit_property", Target("unit", name), proposal.why,
        {"property": prop, "value": str(wanted), "was": str(now)},
        (f"{prop} of {name}: {shown(now)} → {shown(wanted)}, now and after a restart",
         f"/etc/systemd/system.control/{name}.d: a drop-in that systemd writes"),
        ("systemctl", "set-property", "--", name, f"{prop}={wanted}"),
        f"set {prop} to {shown(now)} again, and remove what systemd wrote",
        (Predicted(what, 0, 0, 0, because),),
    )  # fmt: skip


def _raise_container(target: Target, proposal: Proposal) -> Expansion:
    if target.within:
        return refuse(target, "a pod's limit is part of its declaration: change it there")
    if target.runtime not in ("docker", "podman"):
        return refuse(target, "its runtime takes no other limit for a container that exists")
    thing = proposal.action.value or "memory"
    option = "--memory" if thing == "memory" else "--pids-limit"
    return Expansion((
        PlanStep(
            "set_container_limit", target, proposal.why, {"limit": thing, "times": str(_TIMES)},
            (f"{thing} limit of container {target.name}: × {_TIMES}",),
            (target.runtime, "update", f"{option}=…", target.name or ""),
            "set the limit it had",
        ),
    ))  # fmt: skip


def _raise_kernel_value(name: str, proposal: Proposal, node: NodeAccess) -> Expansion:
    now = read_value(name, node)
    words = now.split()
    if not words or not all(word.isdecimal() for word in words):
        return Expansion(cannot=(f"{name} is {now!r}, not a number to raise",))
    wanted = "\t".join(str(int(word) * _TIMES) for word in words)
    return Expansion((value_step(name, now, wanted, proposal.why),))


def _memory_short(node: NodeAccess, more: int) -> str | None:
    """Return why so much more memory cannot be promised; None if it can."""
    try:
        known = read_meminfo(node.places.proc)
    except SourceError as error:
        return f"the node's free memory cannot be read ({error})"
    total, free = known.get("MemTotal"), known.get("MemAvailable")
    if total is None or free is None:
        return "the node's free memory cannot be read"
    spare = free - _KEPT_FREE * total
    if more <= spare:
        return None
    return (
        f"that would take {format_bytes(more)} more, and the node has "
        f"{format_bytes(max(0, int(spare)))} to spare"
    )
