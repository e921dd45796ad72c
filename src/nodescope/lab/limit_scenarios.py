"""A unit that reaches a limit: of its memory, of its tasks, or of a table of the kernel.

All of it is real, and nothing is written to the kernel's log. The table of tracked
connections has one limit for all network namespaces: it is lowered while the scenario runs.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.lab import cgroups, guest
from nodescope.lab.scenario import LastingTruth, Scenario, ScenarioRun, Truth
from nodescope.lab.unit_stage import act_unit, get_guest, get_silent, prepare_unit
from nodescope.sources.kernel_files import read_text

_TABLE = Path("/proc/sys/net/netfilter")
_LEAST_TABLE, _MOST_TABLE = 32_000, 48_000
LOOPS = ("unit_loop",)


def _prepare_memory_loop(run: ScenarioRun) -> None:
    limit = run.variation.between(32, 72)
    wanted = limit + run.variation.between(20, 80)
    pause = run.variation.seconds(0.4, 1.2)
    if run.healthy:
        wanted = limit // 3
    prepare_unit(
        run, "grow", wanted, 4, run.variation.seconds(0.01, 0.05),
        settings=(f"MemoryMax={limit}M", "Restart=always", f"RestartSec={pause}"),
    )  # fmt: skip


def _act_memory_loop(run: ScenarioRun) -> Truth:
    act_unit(run, run.strength)
    if run.healthy:
        return get_silent(run, "memory-limit-loop")
    return _of_unit(run, "memory-limit-loop", "oom_kill", loops=True)


def _prepare_leak(run: ScenarioRun) -> None:
    """Take a MiB at a time, so that the limit is reached a little before the end."""
    limit = run.variation.between(80, 160)
    wanted, pause = (limit // 3, 0.02) if run.healthy else (2 * limit, 0.8 * run.strength / limit)
    prepare_unit(run, "grow", wanted, 1, round(pause, 3), settings=(f"MemoryMax={limit}M",))


def _act_leak(run: ScenarioRun) -> Truth:
    act_unit(run, run.strength)
    if run.healthy:
        return get_silent(run, "memory-leak")
    return _of_unit(run, "memory-leak", "oom_kill")


def _prepare_tasks(run: ScenarioRun) -> None:
    limit = run.variation.between(12, 48)
    wanted = limit // 2 if run.healthy else limit + run.variation.between(5, 30)
    pause = run.variation.seconds(0.03, 0.1)
    prepare_unit(run, "fork", wanted, pause, settings=(f"TasksMax={limit}",))


def _act_tasks(run: ScenarioRun) -> Truth:
    act_unit(run, run.strength)
    if run.healthy:
        return get_silent(run, "task-limit")
    return _of_unit(run, "task-limit", "pids_limit")


def _require_table() -> None:
    guest.require()
    if shutil.which("iptables") is None:
        raise UsageError("iptables is not installed", hint="Debian: `apt install iptables`")
    used = read_text(_TABLE / "nf_conntrack_count")
    if used is None:
        raise UsageError(f"this kernel tracks no connections: {_TABLE} is missing")
    if int(used) > _LEAST_TABLE // 4:
        raise UsageError(
            f"the machine tracks {used} connections itself: lowering the limit would break them"
        )


def _prepare_table(run: ScenarioRun) -> None:
    most = run.variation.between(_LEAST_TABLE, _MOST_TABLE)
    wanted = most // 3 if run.healthy else round(1.2 * most)
    rate = round(most / (0.45 * run.strength))
    inside = prepare_unit(run, "connect", wanted, rate, settings=("LimitNOFILE=20000",))
    # A rule that asks for the state of connections has them tracked; this one does no more.
    rule = ("OUTPUT", "--match", "conntrack", "--ctstate", "INVALID", "--jump", "ACCEPT")
    inside.enter("iptables", "--wait", "--append", *rule)
    # The node of this scenario is the guest: its network is the one that is recorded.
    run.recorder_in += ["nsenter", f"--net=/proc/{get_guest(run).pid}/ns/net"]
    run.ground.write(_TABLE / "nf_conntrack_max", str(most))


def _act_table(run: ScenarioRun) -> Truth:
    act_unit(run, run.strength)
    if run.healthy:
        return get_silent(run, "conntrack-full")
    return _of_unit(run, "conntrack-full", "conntrack_full")


def _of_unit(run: ScenarioRun, scenario: str, symptom: str, *, loops: bool = False) -> Truth:
    """Return the truth about an incident of the unit."""
    unit = run.names["unit"]
    return Truth(
        scenario, healthy=False, finding=True, roots=(unit,), root_kinds=("unit",),
        symptoms=(symptom,), well=run.innocent,
        conditions=(LastingTruth(LOOPS, "unit", unit),) if loops else (),
    )  # fmt: skip


def _require(*controllers: str) -> None:
    guest.require()
    cgroups.require(*controllers)


SCENARIOS = (
    Scenario("memory-limit-loop", "a unit is killed at its memory limit and restarted, for ever",
             20, 120, "seconds", _prepare_memory_loop, _act_memory_loop, require=guest.require,
             least=10, slow=True),
    Scenario("memory-leak", "a unit grows steadily until its memory limit kills it", 30, 600,
             "seconds", _prepare_leak, _act_leak, require=guest.require, least=15, slow=True),
    Scenario("task-limit", "a unit forks until its limit of tasks", 15, 120, "seconds",
             _prepare_tasks, _act_tasks, require=partial(_require, "pids"), least=8, slow=True),
    Scenario("conntrack-full", "a unit opens connections until the kernel's table is full", 20,
             60, "seconds", _prepare_table, _act_table, require=_require_table, least=15,
             slow=True),
)  # fmt: skip
