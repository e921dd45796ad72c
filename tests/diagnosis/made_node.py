"""A node as a recording would tell of it, made of what a test says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nodescope.diagnosis.case import Case
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.details import read_details
from nodescope.records.event import Event, details_of_kind

NOW = 100_000 * SECOND_NS
SLICE = "/system.slice"


def unit(name: str, **more: Any) -> dict[str, Any]:
    """A row of `units`."""
    return {
        "unit": name, "cgroup": f"{SLICE}/{name}", "main_pid": 7, "restarts": 0, "failures": 0,
        "successes": 0, "file_state": "enabled", "preset": "enabled", "vendor": "vendor",
        "wanted_by": "multi-user.target", **more,
    }  # fmt: skip


def churn(pattern: str, removed: int, unreleased: int | None, **more: Any) -> dict[str, Any]:
    """A row of `cgroup_churn`, of five minutes before."""
    return {
        "time_ns": NOW - 300 * SECOND_NS, "parent": SLICE, "pattern": pattern, "maker": "systemd",
        "maker_pid": 1, "made": removed, "removed": removed, "unreleased": unreleased, **more,
    }  # fmt: skip


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
        units: Sequence[dict[str, Any]] = (),
        churned: Sequence[dict[str, Any]] = (),
        containers: Sequence[dict[str, Any]] = (),
        place: str = SLICE,
        dying: int = 9000,
    ) -> None:
        super().__init__((), Window(0, NOW + 1))
        self._all = sorted(events, key=lambda event: event.time_ns)
        self._rows = {"cgroup_churn": churned, "containers": containers}
        held = {"path": place, "kind": "shmem", "dying": dying, "held_bytes": 4096 * dying}
        self._states = {"units": units, "dying_parents": [held]}

    def events_of(self, *kinds: str, within: Window | None = None) -> list[Event]:
        assert within is not None
        return [
            event
            for event in self._all
            if event.kind in kinds and within.from_ns <= event.time_ns < within.to_ns
        ]

    def rows(self, table: str, window: Window) -> list[dict[str, Any]]:
        rows = self._rows.get(table, ())
        return [row for row in rows if window.from_ns <= row["time_ns"] < window.to_ns]

    def state(self, table: str, keys: Sequence[str], at_ns: int) -> list[dict[str, Any]]:
        return list(self._states.get(table, ()))
