"""A machine that stood still as a whole: several cores lock up at once, idle ones among them.

A virtual machine that is paused (a migration, a snapshot, an overloaded host) finds after it that
time has passed. The watchdog of each core then reports a soft lockup of whatever was on it, and
the clock's watchdog may give up on the clock. No task did that: an idle core cannot be hogged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nodescope.diagnosis.finding import Symptom
from nodescope.quantities import SECOND_NS, format_cpu_list
from nodescope.records.event_details import SoftLockupDetails

MACHINE = "the machine"  # the subject of such a symptom
TOGETHER_NS = 3 * SECOND_NS  # the watchdogs of all cores run within that
ALIKE_S = 2  # by which the cores' lengths may differ
CLOCK_NS = 30 * SECOND_NS
_IDLE = "swapper/"


def join_standstills(symptoms: Sequence[Symptom]) -> list[Symptom]:
    """Return symptoms with those of cores that stood still together made one; the rest as is."""
    clocks = [each.time_ns for each in symptoms if each.kind == "clocksource_unstable"]
    joined: list[Symptom] = []
    for group in _groups(each for each in symptoms if each.kind == "soft_lockup"):
        joined += [_join(group)] if _is_standstill(group, clocks) else group
    return [*(each for each in symptoms if each.kind != "soft_lockup"), *joined]


def is_idle(comm: str | None) -> bool:
    """Return whether a task is the one that runs on an idle core."""
    return comm is not None and comm.startswith(_IDLE)


def _groups(lockups: Iterable[Symptom]) -> list[list[Symptom]]:
    """Return lockups in groups of the same moment and the same length."""
    groups: list[list[Symptom]] = []
    for each in sorted(lockups, key=lambda each: each.time_ns):
        last = groups[-1] if groups else None
        if last and each.time_ns - last[0].time_ns <= TOGETHER_NS and _alike(last[0], each):
            last.append(each)
        else:
            groups.append([each])
    return groups


def _alike(one: Symptom, other: Symptom) -> bool:
    lengths = [each.get(SoftLockupDetails).stuck_s for each in (one, other)]
    return None not in lengths and abs((lengths[0] or 0) - (lengths[1] or 0)) <= ALIKE_S


def _is_standstill(group: Sequence[Symptom], clocks: Iterable[int]) -> bool:
    if len({each.cpu for each in group}) < 2:
        return False
    idle = any(is_idle(each.get(SoftLockupDetails).comm) for each in group)
    return idle or any(abs(group[0].time_ns - each) <= CLOCK_NS for each in clocks)


def _join(group: Sequence[Symptom]) -> Symptom:
    first = group[0]
    cpus = sorted({each.cpu for each in group if each.cpu is not None})
    stuck_s = first.get(SoftLockupDetails).stuck_s
    return replace(
        first,
        subject=MACHINE,
        statement=f"{len(cpus)} cores ({format_cpu_list(cpus)}) did not run for {stuck_s} s, "
        "all at the same time",
        cpu=None,
        details=SoftLockupDetails(stuck_s=stuck_s),
    )
