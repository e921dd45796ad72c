"""A core that serves packets is pegged, and starves them; the driver resets its device.

The packets are real, and wait: they are steered to the core, which is in the kernel and
takes no soft interrupt. Simulated are only the lines of a driver whose queue that would be.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

from nodescope.errors import UsageError
from nodescope.lab.ground import Ground
from nodescope.lab.held_core import LONGEST_S
from nodescope.lab.processes import sleep_beside
from nodescope.lab.scenario import ZOMBIE_WALKS, Scenario, ScenarioRun, Truth
from nodescope.lab.simulated import GIVEN_UP_S, reset_lines, write_kmsg
from nodescope.lab.zombie_scenarios import LINES, last_cpu

_QUEUE = 1


def require() -> None:
    """Refuse where no core can be kept from its packets."""
    if len(os.sched_getaffinity(0)) < 2:
        raise UsageError("this scenario needs two cores: one is pegged, the other records it")
    if shutil.which("unshare") is None:
        raise UsageError("unshare is not installed", hint="Debian: `apt install util-linux`")


def _prepare(run: ScenarioRun) -> None:
    cpu = last_cpu()
    run.lasting["lab-traffic"] = start_traffic(run.ground, cpu)
    if not run.healthy:
        run.holder = _start(run.ground, "ready", "held_core", cpu, run.strength)


def start_traffic(ground: Ground, cpu: int) -> subprocess.Popen[bytes]:
    """Send packets that the kernel steers to a core, in a network of their own."""
    return _start(ground, "sending", "steered_traffic", cpu, before=["unshare", "--net", "--mount"])


def _start(
    ground: Ground, word: str, module: str, *arguments: int, before: list[str] | None = None
) -> subprocess.Popen[bytes]:
    """A program that says a word when it is ready, or why it cannot be."""
    process = ground.start(
        [*(before or []), sys.executable, "-m", f"nodescope.lab.{module}", *map(str, arguments)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    said = _hear(process)
    if said != word:
        raise UsageError(f"no core can be starved of packets: {said or f'{module} ended'}")
    return process


def _hear(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def _act(run: ScenarioRun) -> Truth:
    if run.healthy:
        sleep_beside(run.lasting, run.strength)
        return Truth("starved-nic", healthy=True, finding=False)
    cpu = last_cpu()
    holder = run.holder
    assert holder is not None
    assert holder.stdin is not None
    with away_from(cpu):
        begun = time.monotonic()
        holder.stdin.write(b"now\n")
        holder.stdin.flush()
        time.sleep(GIVEN_UP_S)
        write_kmsg(reset_lines(_QUEUE, cpu, time.monotonic() - begun))
        held_s = float(_hear(holder).removeprefix("held "))
    return Truth(
        "starved-nic", healthy=False, finding=True, roots=("lab-holder",),
        mechanisms=("bpf_program",), cpu=cpu, simulated=(LINES,), never=ZOMBIE_WALKS,
        held=held_s / run.strength,
    )  # fmt: skip


@contextlib.contextmanager
def away_from(cpu: int) -> Iterator[None]:
    """Stay off a core that lets nobody else run."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, allowed - {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


SCENARIOS = (
    # Held for less, and the driver would not give up; for more, and the kernel would complain.
    Scenario("starved-nic", "a core that serves packets is pegged; the driver resets its device",
             6, LONGEST_S, "seconds", _prepare, _act, require=require, least=6),
)  # fmt: skip
