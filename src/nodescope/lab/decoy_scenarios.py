"""Decoys without zombies: what looks like trouble and is not, or is no more than it seems."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.lab import cgroups
from nodescope.lab.cgroups import find_controller
from nodescope.lab.processes import sleep_beside, wait_for_success
from nodescope.lab.scenario import ZOMBIE_WALKS, Scenario, ScenarioRun, Truth
from nodescope.lab.zombie_scenarios import kernel_seconds, last_cpu, prepare_reader, read, worker
from nodescope.sources.kernel_files import read_text

_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def _nothing(run: ScenarioRun) -> None:
    """Nothing to prepare."""


def _require_two_cores() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        raise UsageError("locks needs two cores: one has the lock, the other waits for it")


def _require_huge_pages() -> None:
    if "[never]" in (read_text(_HUGE_PAGES) or "[never]"):
        raise UsageError(
            "this kernel gives no transparent huge pages", hint=f"`echo madvise > {_HUGE_PAGES}`"
        )


@dataclass(frozen=True, slots=True)
class _Holder:
    """A decoy's program that holds cores in the kernel: that may well be told, by its name."""

    comm: str
    cores: int = 1


def _one_worker(
    name: str, scenario: str, *more: str, holder: _Holder | None = None
) -> Callable[[ScenarioRun], Truth]:
    """A decoy that is one busy program; its healthy twin is quiet."""

    def act(run: ScenarioRun) -> Truth:
        if run.healthy:
            sleep_beside(run.lasting, run.strength)
            return Truth(scenario, healthy=True, finding=False)
        cpu = last_cpu()
        used_s = kernel_seconds(worker(run.ground, name, cpu, run.strength, *more))
        return Truth(
            scenario, healthy=False, finding=False, never=ZOMBIE_WALKS, cpu=cpu,
            roots=(holder.comm,) if holder else (), facts={"may_find": holder is not None},
            held=used_s / holder.cores / run.strength if holder else None,
        )  # fmt: skip

    return act


def _prepare_reclaim(run: ScenarioRun) -> None:
    prepare_reader(run, run.ground.cgroup())


def _act_reclaim(run: ScenarioRun) -> Truth:
    held = read(run, by="mapper", seconds=run.strength)
    if run.healthy:
        return Truth("reclaim", healthy=True, finding=False)
    return Truth(
        "reclaim", healthy=False, finding=True, cpu=last_cpu(), held=held,
        mechanisms=("direct_reclaim",),
        roots=(f"/{run.ground.name}", f"/{run.ground.name}/lab-reader", "lab-reader"),
        never=ZOMBIE_WALKS,
    )  # fmt: skip


def _prepare_throttled(run: ScenarioRun) -> None:
    controller = find_controller("cpu")
    path = controller.mount / run.ground.name
    run.ground.make_cgroup(path)
    if not run.healthy:
        controller.limit_cpu(path, 0.2)
    run.paths["cpu"] = path


def _act_throttled(run: ScenarioRun) -> Truth:
    busy = worker(run.ground, "busy", last_cpu(), run.strength)
    (run.paths["cpu"] / "cgroup.procs").write_text(str(busy.pid))
    wait_for_success(busy, "lab-busy")
    return Truth("throttled", healthy=run.healthy, finding=False, never=ZOMBIE_WALKS)


SCENARIOS = (
    Scenario("page-faults", "a program that touches new memory all the time", 6, 60, "seconds",
             _nothing, _one_worker("faults", "page-faults", "no", holder=_Holder("lab-faults")),
             decoy=True),
    Scenario("huge-pages", "a program that fills huge pages all the time", 6, 60, "seconds",
             _nothing, _one_worker("faults", "huge-pages", "yes", holder=_Holder("lab-huge")),
             require=_require_huge_pages, decoy=True),
    Scenario("compaction", "a program that has memory compacted all the time", 6, 60, "seconds",
             _nothing, _one_worker("compact", "compaction", holder=_Holder("lab-compact")),
             decoy=True),
    Scenario("busy", "a busy program that harms nobody", 6, 60, "seconds",
             _nothing, _one_worker("busy", "busy"), decoy=True),
    Scenario("locks", "two processes that want one lock of the kernel", 6, 60, "seconds",
             _nothing, _one_worker("locks", "locks", holder=_Holder("lab-locks", cores=2)),
             require=_require_two_cores, decoy=True),
    Scenario("reclaim", "reclaim at a limit, without zombies", 6, 60, "seconds",
             _prepare_reclaim, _act_reclaim, require=partial(cgroups.require, "memory"),
             decoy=True),
    Scenario("throttled", "a program that its CPU limit throttles", 6, 60, "seconds",
             _prepare_throttled, _act_throttled, require=partial(cgroups.require, "cpu"),
             decoy=True),
)  # fmt: skip
