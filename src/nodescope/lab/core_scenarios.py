"""A unit keeps a core to itself: as a real-time task, by packets, or by reading /proc.

Packets, rules and readers are real. In the first two the lab writes the lines of a driver
whose queue that core would serve to /dev/kmsg, and the truth says so: a real-time task
alone does not keep a core from its soft interrupts for so long.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.lab import guest, starvation_scenarios
from nodescope.lab.guest import Guest
from nodescope.lab.processes import sleep_beside
from nodescope.lab.scenario import ZOMBIE_WALKS, Scenario, ScenarioRun, Truth
from nodescope.lab.simulated import GIVEN_UP_S, reset_lines, write_kmsg
from nodescope.lab.starvation_scenarios import away_from, start_traffic
from nodescope.lab.unit_stage import act_unit, get_silent, prepare_unit, read_used_s
from nodescope.lab.zombie_scenarios import LINES, last_cpu

_QUEUE = 1
_REALTIME_US = "940000"  # of each second; the kernel keeps five percent for others
_QUIET_PACKETS = 1000  # a second


def _require() -> None:
    guest.require()
    starvation_scenarios.require()


def _prepare_realtime(run: ScenarioRun) -> None:
    cpu = last_cpu()
    run.lasting["lab-traffic"] = start_traffic(run.ground, cpu)
    settings = [f"CPUAffinity={cpu}"]
    if not run.healthy:
        priority = run.variation.between(1, 80)
        settings += ["CPUSchedulingPolicy=fifo", f"CPUSchedulingPriority={priority}"]
    inside = prepare_unit(run, "spin", run.strength, settings=settings)
    if not run.healthy:
        _allow_realtime(inside)


def _allow_realtime(inside: Guest) -> None:
    """Give the guest's group a share of real-time; kernels without such groups need none."""
    # CONFIG_RT_GROUP_SCHED, v1 only: a new group has none, and its tasks may not ask for it.
    path = Path("/sys/fs/cgroup/cpu", inside.name, "cpu.rt_runtime_us")
    if not path.exists():
        return
    try:
        path.write_text(_REALTIME_US)
    except OSError as error:
        raise UsageError(
            f"the lab's units may not be real-time: {path}: {error.strerror}",
            hint="other cgroups have their share of it (cpu.rt_runtime_us)",
        ) from error


def _act_realtime(run: ScenarioRun) -> Truth:
    cpu = last_cpu()
    with away_from(cpu):
        held = _starve(run, cpu)
    if run.healthy:
        return get_silent(run, "realtime-hog")
    return Truth(
        "realtime-hog", healthy=False, finding=True, roots=(run.names["unit"],),
        root_kinds=("unit",), symptoms=("nic_tx_timeout", "nic_reset"), cpu=cpu,
        simulated=(LINES,), never=ZOMBIE_WALKS, well=run.innocent, held=held,
    )  # fmt: skip


def _starve(run: ScenarioRun, cpu: int) -> float:
    """Let the unit have the core; after five seconds of it the driver gives its queue up.

    Returns the share of that time that the unit had the core.
    """
    begun = time.monotonic()
    act_unit(run, GIVEN_UP_S)
    held = read_used_s(run) / (time.monotonic() - begun)
    if not run.healthy:
        write_kmsg(reset_lines(_QUEUE, cpu, time.monotonic() - begun))
    sleep_beside(run.lasting, max(0.0, begun + run.strength - time.monotonic()))
    return held


def _require_flood() -> None:
    _require()
    for program in ("iptables", "iptables-restore"):
        if shutil.which(program) is None:
            raise UsageError(f"{program} is not installed", hint="Debian: `apt install iptables`")


def _prepare_flood(run: ScenarioRun) -> None:
    """Have each packet of the guest go through many rules, on the core that sends it."""
    rate = _QUIET_PACKETS if run.healthy else 0
    settings = (f"CPUAffinity={last_cpu()}", "Nice=-20")
    inside = prepare_unit(run, "flood", rate, run.strength, settings=settings)
    count = run.variation.between(1500, 4000)
    rules = "".join(f"-A INPUT -s 10.{n >> 8}.{n & 255}.1/32 -j DROP\n" for n in range(count))
    inside.enter("iptables-restore", text=f"*filter\n{rules}COMMIT\n")


def _act_flood(run: ScenarioRun) -> Truth:
    cpu = last_cpu()
    held = _starve(run, cpu)
    if run.healthy:
        return get_silent(run, "softirq-flood")
    return Truth(
        "softirq-flood", healthy=False, finding=True,
        roots=(run.names["unit"],), root_kinds=("unit",),
        mechanisms=("softirq_storm", "netfilter_rules"), cpu=cpu, simulated=(LINES,),
        symptoms=("nic_tx_timeout", "nic_reset"), never=ZOMBIE_WALKS, well=run.innocent, held=held,
    )  # fmt: skip


def _prepare_scanner(run: ScenarioRun) -> None:
    busy = run.variation.seconds(4.5, 6.0)
    every = busy + run.variation.seconds(4.0, 7.0)
    settings = (f"CPUAffinity={last_cpu()}", "Nice=-20")
    spent = 0.05 if run.healthy else busy
    prepare_unit(run, "scan", "/proc", spent, round(every, 2), settings=settings)


def _act_scanner(run: ScenarioRun) -> Truth:
    act_unit(run, run.strength)
    if run.healthy:
        return get_silent(run, "periodic-scanner")
    return Truth(
        "periodic-scanner", healthy=False, finding=True, roots=(run.names["unit"],),
        root_kinds=("unit",), symptoms=("core_held",), cpu=last_cpu(),
        never=ZOMBIE_WALKS, well=run.innocent, facts={"comm": run.names["comm"]},
    )  # fmt: skip


SCENARIOS = (
    Scenario("realtime-hog", "a real-time task of a unit has a core that serves packets", 8, 20,
             "seconds", _prepare_realtime, _act_realtime, require=_require, least=7),
    Scenario("softirq-flood", "packets and their rules take a core in soft interrupts", 8, 20,
             "seconds", _prepare_flood, _act_flood, require=_require_flood, least=7),
    Scenario("periodic-scanner", "a unit reads all of /proc once in a while, for seconds", 26, 60,
             "seconds", _prepare_scanner, _act_scanner, require=_require, least=15, slow=True),
)  # fmt: skip
