"""One unit at fault among others that are well: how most scenarios with units go.

The unit is there from the start and is started when the scenario acts; its healthy twin is
the same unit, which wants less or is allowed more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from nodescope.lab.guest import Guest
from nodescope.lab.processes import sleep_beside
from nodescope.lab.scenario import ScenarioRun, Truth
from nodescope.lab.unit_files import make_neighbours, unit_file
from nodescope.lab.unit_programs import command
from nodescope.lab.zombie_scenarios import start_guest


def prepare_unit(
    run: ScenarioRun,
    program: str,
    *arguments: object,
    settings: Iterable[str] = (),
    shared: Iterable[Path] = (),
) -> Guest:
    """Start a systemd with the unit, which waits to be started, and its neighbours."""
    comm = run.variation.name()
    neighbours = make_neighbours(run.variation)
    run.names |= {"comm": comm, "unit": f"{comm}.service"}
    run.innocent = tuple(neighbours)
    own = unit_file(command(comm, program, *arguments), *settings, start=False)
    return start_guest(run, {**neighbours, run.names["unit"]: own}, shared)


def act_unit(run: ScenarioRun, seconds: float) -> None:
    """Start the unit, and let it run for so long."""
    get_guest(run).start(run.names["unit"])
    sleep_beside(run.lasting, seconds)


def read_used_s(run: ScenarioRun) -> float:
    """Return the CPU time of the unit's process so far; none before it has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it is gone
            head, _, rest = stat.read_text().rpartition(") ")
            if head.partition("(")[2] == run.names["comm"]:
                user, system = rest.split()[11:13]
                return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return 0.0


def get_guest(run: ScenarioRun) -> Guest:
    """Return the systemd that preparing has started."""
    assert run.guest is not None
    return run.guest


def get_silent(run: ScenarioRun, scenario: str) -> Truth:
    """Return the truth about a healthy twin: no incident, no condition."""
    return Truth(scenario, healthy=True, finding=False, well=(*run.innocent, run.names["unit"]))
