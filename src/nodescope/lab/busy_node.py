"""A busy node that is well: services at work, each within its limits. There is nothing to find.

It is no scenario with a twin, but what a quiet recording is made of (`benchmarks/lab_runs.py`).
"""

from __future__ import annotations

from nodescope.lab import guest
from nodescope.lab.processes import sleep_beside
from nodescope.lab.scenario import Scenario, ScenarioRun, Truth
from nodescope.lab.unit_files import make_busy
from nodescope.lab.zombie_scenarios import start_guest


def _prepare(run: ScenarioRun) -> None:
    units = make_busy(run.variation)
    run.innocent = tuple(units)
    start_guest(run, units)


def _act(run: ScenarioRun) -> Truth:
    sleep_beside(run.lasting, run.strength)
    return Truth("busy-node", healthy=True, finding=False, well=run.innocent)


BUSY_NODE = Scenario(
    "busy-node", "services at work, each within its limits", 20, 120, "seconds",
    _prepare, _act, require=guest.require,
)  # fmt: skip
