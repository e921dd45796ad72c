"""Scenarios with zombies: a unit under a real systemd that loops and leaks.

The pile that weeks would have made is made at once, in the same place and the same
way, by `lab-leaker`; the unit's own loop goes on beside it. That is said in the truth.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from nodescope.lab import cgroups, guest
from nodescope.lab.ground import Ground
from nodescope.lab.guest import Guest
from nodescope.lab.processes import sleep_beside, wait_for_success, wait_until_ready
from nodescope.lab.scenario import ZOMBIE_WALKS, LastingTruth, Scenario, ScenarioRun, Truth
from nodescope.lab.simulated import job_failed, reset_lines, write_kmsg

HELD_S = 6.0
PILE = "the pile of zombies was made at once, where and as the unit's loop makes them"
LINES = "the driver's lines were written to /dev/kmsg by the lab"

# What was removed counts as never released after 15 s, and that is told every ten seconds.
TOLD_S = 30.0
_INNOCENT = "eager.service"

_LOOP = """\
[Unit]
Description=A default agent nobody uses
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sh -c 'head -c 4096 /dev/zero > /tmp/state-$$$$; exit 5'
Restart=always
RestartSec={every}
MemoryAccounting=yes
[Install]
WantedBy=multi-user.target
"""
_NO_LEAK = _LOOP.replace("head -c 4096 /dev/zero > /tmp/state-$$$$; ", "")
_CALM = """\
[Unit]
Description=A service that is well
[Service]
ExecStart=/bin/sleep infinity
MemoryAccounting=yes
[Install]
WantedBy=multi-user.target
"""


def worker(
    ground: Ground, name: str, cpu: int, seconds: float, *more: str
) -> subprocess.Popen[bytes]:
    """Start one of the small programs."""
    command = [sys.executable, "-m", "nodescope.lab.workers", name, str(cpu), str(seconds), *more]
    return ground.start(command)


def kernel_seconds(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; how long it ran in the kernel, by the kernel's own account."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_stime


def last_cpu() -> int:
    """The core that is pegged: not the first, which serves everybody."""
    return max(os.sched_getaffinity(0))


def start_guest(run: ScenarioRun, units: Mapping[str, str], shared: Iterable[Path] = ()) -> Guest:
    """Start a real systemd with these units, known to the recorder; it sees `shared` folders."""
    started = Guest(run.ground, units, shared)
    run.guest = started
    run.lasting["the lab's systemd"] = started.process
    run.recorder += ["--systemd-bus", started.bus, "--journal", str(started.journal)]
    return started


def _prepare_zombies(run: ScenarioRun, beside: Mapping[str, str] | None = None) -> None:
    """A unit that leaks, with others beside it; a pile of its zombies; somebody to walk them."""
    units = {"well.service": _CALM}
    if not run.healthy:
        units |= {"leaky.service": _LOOP.format(every="1s"), **(beside or {})}
    services = run.ground.memory.mount / start_guest(run, units).slice.lstrip("/")
    if not run.healthy:
        pile(run, services)
    prepare_reader(run, services.parent)


def pile(run: ScenarioRun, parent: Path, name: str = "leaky.service") -> None:
    """Zombies in a place, named after one who leaks them, as many as the strength says."""
    run.ground.memory.hand_down(parent)
    pins = run.ground.folder("pins", tmpfs=f"{run.strength * 8192 + (16 << 20)}")
    run.say(f"making {run.strength:,} zombies")
    arguments = (str(parent), str(pins), str(run.strength), name)
    leaker = worker(run.ground, "leaker", -1, 0, *arguments)
    wait_for_success(leaker, "lab-leaker")


def prepare_reader(run: ScenarioRun, above: Path) -> None:
    """A reader in a cgroup whose ancestor is at its limit."""
    # A file of holes: its pages are made by the kernel, no disk is waited for.
    big = run.ground.folder("data", on_disk=True) / "holes"
    with big.open("wb") as file:
        file.truncate(64 << 30)
    reader = above / "lab-reader"
    run.ground.make_cgroup(reader)
    run.paths |= {"big": big, "reader": reader, "above": above}


def read(run: ScenarioRun, by: str = "reader", seconds: float = HELD_S) -> float:
    """Hold a core by reading at the limit; the healthy twin reads now and then.

    Returns the share of the time that the core was in the kernel for it.
    """
    above = run.paths["above"]
    memory = run.ground.memory
    if not run.healthy:
        used = int((above / memory.used).read_text())
        run.ground.write(above / memory.limit, str(used + (24 << 20)))
    duty = "0.05" if run.healthy else "1"
    reader, big = str(run.paths["reader"]), str(run.paths["big"])
    process = worker(run.ground, by, last_cpu(), seconds, reader, big, duty)
    return kernel_seconds(process) / seconds


def _act_zombies(run: ScenarioRun, scenario: str = "zombies", never: tuple[str, ...] = ()) -> Truth:
    held = read(run)
    if run.healthy:
        return Truth(scenario, healthy=True, finding=False)
    return Truth(
        scenario, healthy=False, finding=True, roots=("leaky.service",), never=never,
        mechanisms=("memcg_walk_by_reclaim",), cpu=last_cpu(), simulated=(PILE,), held=held,
    )  # fmt: skip


def _act_agent(run: ScenarioRun) -> Truth:
    """All of the story: the walk holds the core, the device is reset, the job fails."""
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    job = worker(run.ground, "job", -1, 300, str(server.getsockname()[1]))
    peer = wait_until_ready(job, "lab-job", partial(_accept, server))
    held = read(run)
    if not run.healthy:
        write_kmsg(reset_lines(queue=1, cpu=last_cpu(), held_s=HELD_S))
        time.sleep(0.3)
        peer.close()  # what a reset does to a connection that does not survive it
    else:
        peer.sendall(b"x")
        peer.close()
    server.close()
    if job.wait() != 0:
        job_failed(run.archive, "lab-job", "the job lost its connection")
    if run.healthy:
        return Truth("zombie-agent", healthy=True, finding=False)
    return Truth(
        "zombie-agent", healthy=False, finding=True, roots=("leaky.service",),
        mechanisms=("memcg_walk_by_reclaim",), cpu=last_cpu(), held=held,
        simulated=(PILE, LINES, "the connection was closed by the lab when the lines were written"),
    )  # fmt: skip


def _accept(server: socket.socket) -> socket.socket | None:
    """Return the connection of who has called; None while nobody has."""
    try:
        peer, _ = server.accept()
    except BlockingIOError:
        return None
    return peer


def _prepare_no_leak(run: ScenarioRun) -> None:
    start_guest(
        run,
        {"well.service": _CALM}
        | ({} if run.healthy else {"loops.service": _NO_LEAK.format(every="1s")}),
    )


def _act_no_leak(run: ScenarioRun) -> Truth:
    sleep_beside(run.lasting, run.strength)
    unit = "loops.service"
    return Truth(
        "loop-without-leak", healthy=run.healthy, finding=False, never=(unit, *ZOMBIE_WALKS),
        conditions=() if run.healthy else (LastingTruth(("unit_loop",), "unit", unit),),
    )  # fmt: skip


def _prepare_pile(run: ScenarioRun) -> None:
    if not run.healthy:
        pile(run, run.ground.cgroup())


def _act_pile(run: ScenarioRun) -> Truth:
    sleep_beside(run.lasting, 6)
    return Truth("unwalked-zombies", healthy=run.healthy, finding=False, never=ZOMBIE_WALKS)


SCENARIOS = (
    Scenario("zombies", "a unit loops and leaks memory cgroups; reclaim walks them", 6000, 50_000,
             "zombies", _prepare_zombies, _act_zombies, require=guest.require),
    Scenario("zombie-agent", "the whole story: loop, zombies, pegged core, reset, failed job",
             6000, 50_000, "zombies", _prepare_zombies, _act_agent, require=guest.require),
    Scenario("loop-beside-leak", "a unit leaks; one beside it loops faster, and is innocent",
             6000, 50_000, "zombies",
             partial(_prepare_zombies, beside={_INNOCENT: _NO_LEAK.format(every="400ms")}),
             partial(_act_zombies, scenario="loop-beside-leak", never=(_INNOCENT,)),
             require=guest.require, before_s=TOLD_S, slow=True),
    Scenario("loop-without-leak", "a unit loops, and leaves nothing behind", 6, 600,
             "seconds", _prepare_no_leak, _act_no_leak, require=guest.require, decoy=True),
    Scenario("unwalked-zombies", "a pile of zombies that nobody walks", 3000, 50_000,
             "zombies", _prepare_pile, _act_pile, require=partial(cgroups.require, "memory"),
             decoy=True),
)  # fmt: skip
