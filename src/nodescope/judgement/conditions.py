"""Every condition of a node at a moment, worst first.

Each subject judges its own: units and containers as `audit` does, zombies as `zombies` does,
limits, pressure, and what is reported again and again. A table that was not recorded yields
no condition; `unobserved` names it.
"""

from __future__ import annotations

from nodescope.judgement.cgroup_owners import CgroupOwners
from nodescope.judgement.condition import Condition
from nodescope.judgement.lapses import describe_lapse
from nodescope.judgement.limit_conditions import find_limit_conditions
from nodescope.judgement.pressure_conditions import find_pressure_conditions
from nodescope.judgement.recorded_audit import lacks_unit_states
from nodescope.judgement.reported_conditions import find_reported_conditions
from nodescope.judgement.service_conditions import find_service_conditions
from nodescope.judgement.zombie_conditions import find_zombie_conditions
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupNameRow, ContainerRow

# What each table is needed for, in words.
_WITNESSES = {
    "units": "units that loop, fail or are held back",
    "containers": "containers that loop or fail",
    "memory_cgroups": "zombie memory cgroups",
    "cgroups": "throttling and growing memory",
    "limits": "file systems and tables that are nearly full",
    "pressure": "waiting for memory and disks",
}


def find_conditions(recording: Recording, window: Window) -> list[Condition]:
    """Return what lasts at the end of a window, the worst first; none if nothing does."""
    at_ns = min(window.to_ns, recording.extent.to_ns) - 1
    owners = CgroupOwners(
        recording.state(CgroupNameRow, at_ns), recording.state(ContainerRow, at_ns)
    )
    found = [
        *find_zombie_conditions(recording, at_ns, owners),
        *find_limit_conditions(recording, at_ns, owners),
        *find_service_conditions(recording, at_ns),
        *find_pressure_conditions(recording, at_ns, owners),
        *find_reported_conditions(recording, at_ns, owners),
    ]
    return sorted(found, key=lambda each: each.severity != "critical")


def unobserved(recording: Recording, window: Window) -> list[str]:
    """Return the conditions that could not be seen at the end of a window, in words."""
    at_ns = min(window.to_ns, recording.extent.to_ns) - 1
    lapsed = (describe_lapse(recording, table, words, at_ns) for table, words in _WITNESSES.items())
    unseen = [each for each in lapsed if each is not None]
    units = _WITNESSES["units"]
    if not any(each.startswith(units) for each in unseen) and lacks_unit_states(recording, at_ns):
        unseen.insert(0, units)
    return unseen
