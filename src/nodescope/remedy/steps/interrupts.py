"""Steps that move a network device's interrupts away from the core that serves them all."""

from __future__ import annotations

from collections import Counter

from nodescope.errors import SourceError
from nodescope.quantities import parse_cpu_list
from nodescope.records.action import Target
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.proposals import Proposal
from nodescope.remedy.steps.expansion import Expansion
from nodescope.sources.network.affinity import read_affinity
from nodescope.sources.network.interrupts import QueueInterrupt, assign, read_names
from nodescope.sources.network.nics import list_nics, read_device
from nodescope.sources.node.identity import read_online_cpus


def expand_spread_queues(proposal: Proposal, node: NodeAccess) -> Expansion:
    """Return the steps that give each queue of a device a core of its own, as far as there are."""
    target = proposal.action.target
    wanted = None if target is None else target.name
    proc, sys = node.places.proc, node.places.sys
    try:
        devices = [read_device(sys, nic) for nic in list_nics(sys) if wanted in (None, nic)]
        queues = [each for each in assign(read_names(proc), devices) if each.queue is not None]
        cores = read_online_cpus(sys)
    except SourceError as error:
        return Expansion(cannot=(f"interrupts cannot be read, so none is moved: {error}",))
    served = {each: _core_of(each, node) for each in queues}
    load = Counter(core for core in served.values() if core is not None)
    steps = []
    for queue, core in served.items():
        free = min(cores, key=lambda each: (load[each], each))
        if core is None or load[core] - load[free] < 2:
            continue
        load[core] -= 1
        load[free] += 1
        steps.append(_move(queue, core, free, node, proposal.why))
    if not steps:
        name = wanted or "network devices"
        return Expansion(cannot=(f"the queues of {name} are spread over the cores already",))
    return Expansion(tuple(steps))


def _core_of(queue: QueueInterrupt, node: NodeAccess) -> int | None:
    affinity = read_affinity(node.places.proc, queue.irq)
    cores = parse_cpu_list(affinity.effective or affinity.allowed or "")
    return cores[0] if len(cores) == 1 else None


def _move(queue: QueueInterrupt, core: int, to: int, node: NodeAccess, why: str) -> PlanStep:
    was = read_affinity(node.places.proc, queue.irq).allowed or str(core)
    path = f"/proc/irq/{queue.irq}/smp_affinity_list"
    return PlanStep(
        "move_interrupt", Target("network_device", queue.nic),
        f"core {core} serves several queues: {why}",
        {"irq": str(queue.irq), "name": queue.name, "cores": str(to), "was": was},
        (f"{path} ({queue.name}): {was} → {to}, until the next boot or irqbalance",),
        ("tee", path), f"write {was} back",
    )  # fmt: skip
