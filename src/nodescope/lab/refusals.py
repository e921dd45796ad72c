"""Where the lab is refused: where it could hurt, and where it would not fit.

A memory cgroup costs about 13 kB and 2.6 kB more for each CPU that the machine could have,
dead or alive; the file that keeps a dead one costs a page, and what a file costs.
"""

from __future__ import annotations

import os

from nodescope.errors import UsageError
from nodescope.lab.in_service import CONSENT, find_signs, has_consent
from nodescope.lab.scenario import Scenario
from nodescope.quantities import parse_cpu_list
from nodescope.sources.kernel_files import read_text
from nodescope.sources.node.meminfo import read_meminfo
from nodescope.sources.places import Places

_ZOMBIE_BYTES, _PER_CPU_BYTES, _FILE_BYTES = 13_000, 2_600, 8_192
_SHARE = 0.5  # of the memory that is free: the rest is for the machine


def check(
    scenario: Scenario, strength: int, *, consent: bool, places: Places | None = None
) -> None:
    """Refuse where it could hurt, before anything is made; `consent`: it is a test machine."""
    places = places or Places()
    if os.geteuid() != 0:
        raise UsageError("the lab needs root: it makes cgroups, mounts and namespaces")
    if not scenario.least <= strength <= scenario.most:
        raise UsageError(
            f"a strength of {strength:,} {scenario.unit}",
            hint=f"{scenario.least:,} to {scenario.most:,}",
        )
    if not (consent or has_consent()) and (signs := find_signs(places)):
        raise UsageError(
            f"this machine looks as if it serves somebody: {'; '.join(signs)}",
            hint=f"--yes (or {CONSENT}=1) if it is a test machine; a scenario holds a core, puts "
            "memory cgroups on it, or changes limits of its kernel, for a minute",
        )
    scenario.require()
    if scenario.unit == "zombies" and strength > (fit := count_fitting(places)):
        raise UsageError(
            f"{strength:,} zombies do not fit into half of the memory that is free",
            hint=f"--strength {fit} would" if fit else "free some memory first",
        )


def count_fitting(places: Places) -> int:
    """How many zombies half of the memory that is free has room for."""
    possible = read_text(places.sys / "devices/system/cpu/possible")
    cpus = len(parse_cpu_list(possible)) if possible else os.cpu_count() or 1
    each = _ZOMBIE_BYTES + _PER_CPU_BYTES * cpus + _FILE_BYTES
    return int(read_meminfo(places.proc)["MemAvailable"] * _SHARE) // each
