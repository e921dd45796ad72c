"""Scenarios without zombies: a starved network core, and what looks like trouble and is not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from nodescope.lab.leaking import (
    HELD_S,
    LINES,
    kernel_seconds,
    last_cpu,
    prepare_reader,
    read,
    worker,
)
from nodescope.lab.scenario import Run, Scenario, Truth
from nodescope.lab.simulated import reset_lines, write_kmsg

_ZOMBIE_WALKS = ("memcg_walk_by_read", "memcg_walk_by_reclaim", "zombie memory cgroups")


def _nothing(run: Run) -> None:
    """Nothing to prepare."""


def _act_starved(run: Run) -> Truth:
    cpu = last_cpu()
    traffic = worker(run.ground, "traffic", 0, run.strength + 4)
    if run.healthy:
        traffic.wait()
        return Truth("starved-nic", healthy=True, finding=False)
    held = kernel_seconds(worker(run.ground, "holder", cpu, run.strength)) / run.strength
    write_kmsg(reset_lines(queue=1, cpu=cpu, held_s=run.strength))
    traffic.wait()
    return Truth(
        "starved-nic", healthy=False, finding=True, roots=("lab-holder",),
        mechanisms=("random_bytes",), cpu=cpu, simulated=(LINES,), never=_ZOMBIE_WALKS, held=held,
    )  # fmt: skip


def _one_worker(name: str, scenario: str, *more: str) -> Callable[[Run], Truth]:
    """A decoy that is one busy program; its healthy twin is quiet."""

    def act(run: Run) -> Truth:
        if run.healthy:
            time.sleep(run.strength)
            return Truth(scenario, healthy=True, finding=False)
        worker(run.ground, name, last_cpu(), run.strength, *more).wait()
        # A core that a program holds in the kernel may well be told, by its own name.
        comms = {"faults": "lab-huge" if more == ("yes",) else "lab-faults", "locks": "lab-locks",
                 "compact": "lab-compact"}  # fmt: skip
        allowed = (comms[name],) if name in comms else ()
        return Truth(
            scenario, healthy=False, finding=False, roots=allowed, never=_ZOMBIE_WALKS,
            facts={"may_find": bool(allowed)},
        )  # fmt: skip

    return act


def _prepare_reclaim(run: Run) -> None:
    prepare_reader(run, run.ground.cgroup())


def _act_reclaim(run: Run) -> Truth:
    held = read(run, by="mapper")
    if run.healthy:
        return Truth("reclaim", healthy=True, finding=False)
    return Truth(
        "reclaim", healthy=False, finding=True, cpu=last_cpu(), held=held,
        mechanisms=("direct_reclaim",),
        roots=(f"/{run.ground.name}", f"/{run.ground.name}/lab-reader", "lab-reader"),
        never=_ZOMBIE_WALKS,
    )  # fmt: skip


def _prepare_throttled(run: Run) -> None:
    mount = Path("/sys/fs/cgroup/cpu")
    path = mount / run.ground.name
    run.ground.adopt_cgroup(path)
    path.mkdir()
    if not run.healthy:
        (path / "cpu.cfs_quota_us").write_text("20000")
    run.kept["cpu"] = path


def _act_throttled(run: Run) -> Truth:
    busy = worker(run.ground, "busy", last_cpu(), run.strength)
    path: Path = run.kept["cpu"]
    (path / "cgroup.procs").write_text(str(busy.pid))
    busy.wait()
    return Truth("throttled", healthy=run.healthy, finding=False, never=_ZOMBIE_WALKS)


SCENARIOS = (
    Scenario("starved-nic", "a core that serves packets is held; the driver resets its device",
             round(HELD_S), 60, "seconds", _nothing, _act_starved),
    Scenario("page-faults", "a program that touches new memory all the time", 6, 60, "seconds",
             _nothing, _one_worker("faults", "page-faults", "no"), decoy=True),
    Scenario("huge-pages", "a program that fills huge pages all the time", 6, 60, "seconds",
             _nothing, _one_worker("faults", "huge-pages", "yes"), decoy=True),
    Scenario("compaction", "a program that has memory compacted all the time", 6, 60, "seconds",
             _nothing, _one_worker("compact", "compaction"), decoy=True),
    Scenario("busy", "a busy program that harms nobody", 6, 60, "seconds",
             _nothing, _one_worker("busy", "busy"), decoy=True),
    Scenario("locks", "threads that wait for one lock of the kernel", 6, 60, "seconds",
             _nothing, _one_worker("locks", "locks"), decoy=True),
    Scenario("reclaim", "reclaim at a limit, without zombies", 6, 60, "seconds",
             _prepare_reclaim, _act_reclaim, decoy=True),
    Scenario("throttled", "a program that its CPU limit throttles", 6, 60, "seconds",
             _prepare_throttled, _act_throttled, decoy=True),
)  # fmt: skip
