"""Time lost for want of CPU, memory or I/O: the table `pressure`, of the node itself.

A minute in which all tasks waited for memory a fifth of the time is an event.
"""

from __future__ import annotations

from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.memory_stall import MemoryStallWatch
from nodescope.records.node_tables import PressureRow
from nodescope.sources.node.pressure import Pressure, read_pressure
from nodescope.sources.places import Places


class PressureObserver:
    """Tells totals that moved."""

    interval_ns = 2 * SECOND_NS
    patient = False

    def __init__(self, places: Places) -> None:
        self._places = places
        self._said: dict[str, Pressure] = {}
        self._memory = MemoryStallWatch()

    def begin_segment(self) -> None:
        self._said = {}

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        found = read_pressure(self._places)
        for resource, pressure in found.items():
            if self._said.get(resource) != pressure:
                row = PressureRow(
                    time_ns=now_ns,
                    cgroup="",
                    resource=resource,
                    some_us=pressure.some_us,
                    full_us=pressure.full_us,
                )
                said.add(row)
        self._said = found
        memory = found.get("memory")
        if memory is not None and memory.full_us is not None:
            said.events += self._memory.look(now_ns, memory.full_us)
        return said

    def close(self) -> None:
        """Nothing is held."""


def make(setting: Setting) -> PressureObserver:
    """An observer of this node's pressure."""
    return PressureObserver(setting.places)
