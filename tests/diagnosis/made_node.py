"""A node as a recording would tell of it, made of what a test says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nodescope.diagnosis.case import Case
from nodescope.judgement.zombie_reading import ZombieReading, find_parents
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.details import read_details
from nodescope.records.event import Event, details_of_kind
from nodescope.records.node_tables import CgroupChurnRow, ContainerRow, DyingParentRow, UnitRow
from nodescope.records.recorder_tables import HeartbeatRow

NOW = 100_000 * SECOND_NS
SLICE = "/system.slice"
BEGUN = HeartbeatRow(time_ns=0, wall_ns=0)  # nothing else is recorded of that time


def unit(name: str, **more: Any) -> UnitRow:
    """A row of `units`."""
    row = {
        "time_ns": NOW - SECOND_NS, "unit": name, "cgroup": f"{SLICE}/{name}", "main_pid": 7,
        "restarts": 0, "failures": 0,
        "successes": 0, "file_state": "enabled", "preset": "enabled", "vendor": "vendor",
        "wanted_by": "multi-user.target", **more,
    }  # fmt: skip
    return UnitRow(**row)


def churn(pattern: str, removed: int, unreleased: int | None, **more: Any) -> CgroupChurnRow:
    """A row of `cgroup_churn`, of five minutes before."""
    row = {
        "time_ns": NOW - 300 * SECOND_NS, "parent": SLICE, "pattern": pattern, "maker": "systemd",
        "maker_pid": 1, "made": removed, "removed": removed, "unreleased": unreleased,
        "released": 0, "attached": 0, **more,
    }  # fmt: skip
    return CgroupChurnRow(**row)


def ends(
    name: str, every_s: float, kind: str = "unit_exit", *, since_s: int = 3600, until_s: int = 0,
    **details: Any,
) -> list[Event]:  # fmt: skip
    """Ends of one thing, from so many seconds before the moment."""
    count = int((since_s + until_s) / every_s)
    times = (NOW - int((since_s - at * every_s) * SECOND_NS) for at in range(count))
    told = read_details(details_of_kind(kind), {"exit_status": 1, **details})
    return [Event(time, kind, name, "ended", None, told) for time in times]


def said_by(name: str, kind: str, before_s: float = 60, **details: Any) -> Event:
    """What the recorder says of a unit."""
    told = read_details(details_of_kind(kind), details)
    return Event(NOW - int(before_s * SECOND_NS), kind, name, "is active, but", None, told)


class Node(Case):
    """What the recording answers."""

    def __init__(
        self,
        events: Iterable[Event] = (),
        units: Sequence[UnitRow] = (),
        churned: Sequence[CgroupChurnRow] = (),
        containers: Sequence[ContainerRow] = (),
        place: str = SLICE,
        dying: int = 9000,
    ) -> None:
        held = DyingParentRow(
            time_ns=NOW, path=place, kind="shmem", dying=dying, held_bytes=4096 * dying
        )
        recording = recording_of([BEGUN, *units, *churned, *containers, held])
        super().__init__(recording, Window(0, NOW + 1))
        self._all = sorted(events, key=lambda event: event.time_ns)

    def zombies(self, dying: int, uptime_s: float | None) -> ZombieReading:
        """So many are counted, with the parent that was recorded."""
        uptime_ns = None if uptime_s is None else int(uptime_s * SECOND_NS)
        parents = find_parents(self.state(DyingParentRow, NOW), exact=False)
        return ZombieReading("v1", dying + 240, 240, dying, NOW, parents, uptime_ns=uptime_ns)

    def events_of(self, *kinds: str, within: Window | None = None) -> list[Event]:
        assert within is not None
        return [
            event
            for event in self._all
            if event.kind in kinds and within.from_ns <= event.time_ns < within.to_ns
        ]
