"""The mitigations that people try first, as arms of an experiment.

None of them is applied from here: each names what to change and how it is taken back.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Mitigation:
    """One arm: what is changed on its nodes, and how it is taken back."""

    name: str
    what: str
    change: str
    undo: str


TEMPLATES = (
    Mitigation(
        "huge-pages",
        "transparent huge pages only where a program asks for them",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        "write back what the file had selected",
    ),
    Mitigation(
        "allocator",
        "another memory allocator for the job (jemalloc)",
        "LD_PRELOAD=libjemalloc.so.2 in the job's environment",
        "remove it from the environment",
    ),
    Mitigation(
        "affinity",
        "the job kept off the cores that serve the NIC's queues",
        "taskset or the cpuset of the job's cgroup",
        "write back the former list of cores",
    ),
    Mitigation(
        "interrupt-pinning",
        "the NIC's interrupts moved to cores of their own",
        "/proc/irq/N/smp_affinity_list, and irqbalance told to leave them",
        "write back the former lists, start irqbalance again",
    ),
    Mitigation(
        "reboot",
        "nodes rebooted every few days",
        "a drained reboot on a schedule",
        "stop the schedule; a reboot hides a leak until it has grown again",
    ),
    Mitigation(
        "the-fix",
        "what `nodescope fix plan` proposes for these nodes",
        "nodescope fix apply plan.json",
        "nodescope fix undo plan.json",
    ),
)
BY_NAME = {each.name: each for each in TEMPLATES}


def mitigation_of(name: str) -> Mitigation:
    """Return the template of a name; any other name is a mitigation of the user's own."""
    return BY_NAME.get(name) or Mitigation(name, "a mitigation of your own", "", "")
