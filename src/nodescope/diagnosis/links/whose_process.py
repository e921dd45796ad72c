"""Whose process it was: the cgroup of a task, by the best witness near the moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.diagnosis.case import Case
from nodescope.judgement.core_occupants import IN_ONE_CGROUP, count_cgroups_of
from nodescope.quantities import MINUTE_NS
from nodescope.recording.window import Window
from nodescope.records.event_details import OomKillDetails
from nodescope.records.node_tables import ContainerRow, UnitRow
from nodescope.records.witness_tables import BlockedTaskRow, CoreOwnerRow

BEFORE_NS = 10 * MINUTE_NS  # a blocked task has no samples: its last ones may be minutes old
AFTER_NS = 2 * MINUTE_NS


@dataclass(frozen=True, slots=True)
class Place:
    """The cgroup of a task, who shows it, and how strongly (in nats)."""

    cgroup: str
    because: str
    strength: float


def find_place(case: Case, at_ns: int, comm: str | None, pid: int | None) -> Place | None:
    """Return the cgroup that a task was in around a moment; None if nothing shows it."""
    near = Window(at_ns - BEFORE_NS, at_ns + AFTER_NS)
    found = (
        _killed(case, near, pid),
        _seen_by_pid(case, near, pid),
        _main_process(case, at_ns, pid),
        None if pid is None else _sampled(case, near, comm, pid),
        _sampled(case, near, comm, None),
        _seen_by_name(case, near, comm),
    )
    # The strongest, so that what else is recorded can only help.
    return max(filter(None, found), key=lambda each: each.strength, default=None)


def _witnessed(case: Case, near: Window) -> Iterable[BlockedTaskRow | CoreOwnerRow]:
    yield from case.rows(BlockedTaskRow, near)
    yield from case.rows(CoreOwnerRow, near)


def _seen_by_pid(case: Case, near: Window, pid: int | None) -> Place | None:
    for row in _witnessed(case, near):
        if pid is not None and pid in (row.tid, row.pid) and row.cgroup:
            return Place(row.cgroup, f"process {pid} was seen there", 4.5)
    return None


def _seen_by_name(case: Case, near: Window, comm: str | None) -> Place | None:
    found = {row.cgroup for row in _witnessed(case, near) if row.comm == comm and row.cgroup}
    if comm is None or len(found) != 1:
        return None
    return Place(found.pop(), f"a task of this name, {comm}, was seen there", 2.0)


def _sampled(case: Case, near: Window, comm: str | None, pid: int | None) -> Place | None:
    if comm is None and pid is None:
        return None
    by = count_cgroups_of(case.recording.samples(near), comm, pid)
    main = by.find_main(IN_ONE_CGROUP)
    if main is None or not main.key:
        return None
    whose = f"of {comm}'s" if pid is None else f"of process {pid}'s"
    strength = 2.0 + 2.0 * main.share if pid is not None else 0.5 + 2.0 * main.share
    return Place(main.key, f"{main.share:.0%} {whose} samples are in {main.key}", strength)


def _killed(case: Case, near: Window, pid: int | None) -> Place | None:
    for event in case.events_of("oom_kill", within=near):
        told = event.get(OomKillDetails)
        if pid is not None and told.pid == pid and told.task_memcg:
            return Place(told.task_memcg, "the OOM killer names its cgroup", 5.0)
    return None


def _main_process(case: Case, at_ns: int, pid: int | None) -> Place | None:
    if pid is None or pid <= 1:
        return None
    for unit in case.state(UnitRow, at_ns):
        if unit.main_pid == pid and unit.cgroup:
            return Place(unit.cgroup, f"process {pid} is the main process of {unit.unit}", 4.0)
    for row in case.state(ContainerRow, at_ns):
        if row.pid == pid and row.cgroup:
            return Place(row.cgroup, f"process {pid} is the first of container {row.name}", 4.0)
    return None
