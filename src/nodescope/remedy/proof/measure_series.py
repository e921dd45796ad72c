"""Measures of a mechanism and of its outcome in a recording: when, how much, and who looked.

One reading for the time before a plan (`baselines`) and for the time after it
(`recorded_aftermath`), so that both count the same thing. Subjects: a unit's name, a
container's name (or `namespace/pod/name`), a cgroup's path; `node` for the whole of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from nodescope.judgement.zombie_reading import read_dying
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.recording.coverage import Coverage
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import OomKillDetails, PeggedCoreDetails
from nodescope.records.node_tables import CgroupChurnRow, MemoryCgroupsRow
from nodescope.sources.cgroups.name_pattern import lies_in

NODE = "node"
_ONE_INCIDENT_NS = 10 * MINUTE_NS  # resets so close together are one incident
_UNIT_STARTS = ("unit_started", "unit_restart")
_CONTAINER_STARTS = ("container_started", "container_restart")


@dataclass(frozen=True, slots=True)
class Series:
    """Events of a measure with their amounts, or readings of a level; and what was observed."""

    coverage: Coverage
    times_ns: tuple[int, ...] = ()
    amounts: tuple[float, ...] = ()  # of each event; usually 1
    readings: tuple[tuple[int, float], ...] = ()  # of a level: time, value

    @property
    def count(self) -> float:
        """Return the sum of all amounts."""
        return sum(self.amounts)

    @property
    def observed_s(self) -> float:
        """Return how much of the window was observed."""
        return self.coverage.observed_ns / SECOND_NS

    @property
    def unbroken_s(self) -> float:
        """Return the longest span of the window without a hole in the observation."""
        return max((each.length_ns for each in self.coverage.spans), default=0) / SECOND_NS


def read_series(recording: Recording, measure: str, subject: str, window: Window) -> Series | None:
    """Read a measure in a window; None for one that recordings do not have."""
    read = _READERS.get(measure)
    if read is None:
        return None
    table = _TABLES[measure]
    if recording.imported:  # logs of other tools are events alone
        table = "events"
    return read(recording, subject, window, recording.coverage(table, window))


def _read_unit_starts(recording: Recording, unit: str, window: Window, seen: Coverage) -> Series:
    events = [each for each in recording.events(window, *_UNIT_STARTS) if each.subject == unit]
    # The bus and the journal report one start in two ways; whichever saw more is complete.
    started, again = ([each for each in events if each.kind == kind] for kind in _UNIT_STARTS)
    return _of_events(started if len(started) >= len(again) else again, seen)


def _read_child_failures(recording: Recording, unit: str, window: Window, seen: Coverage) -> Series:
    """Read the reports of a child that fails inside a running unit: none is silence."""
    events = recording.events(window, "unit_hidden_loop", "unit_child_failing")
    return _of_events((each for each in events if each.subject == unit), seen)


def _read_container_starts(
    recording: Recording, name: str, window: Window, seen: Coverage
) -> Series:
    events = recording.events(window, *_CONTAINER_STARTS)
    return _of_events((each for each in events if is_container(each.subject, name)), seen)


def is_container(subject: str, name: str) -> bool:
    """Decide whether an event's subject is the container of that name."""
    return subject == name or subject.rpartition("/")[2] == name


def _read_oom_kills(recording: Recording, cgroup: str, window: Window, seen: Coverage) -> Series:
    kills = recording.events(window, "oom_kill")
    return _of_events((each for each in kills if _is_killed_in(each, cgroup)), seen)


def _is_killed_in(event: Event, cgroup: str) -> bool:
    told = event.get(OomKillDetails)
    places = (told.memcg, told.task_memcg, event.subject)
    return any(each is not None and each != "/" and lies_in(each, cgroup) for each in places)


def _read_cgroups_made(recording: Recording, place: str, window: Window, seen: Coverage) -> Series:
    rows = [
        row
        for row in recording.rows(CgroupChurnRow, window)
        if row.made and (lies_in(row.parent, place) or lies_in(row.maker_cgroup or "", place))
    ]
    rows.sort(key=lambda row: row.time_ns)
    return Series(seen, tuple(row.time_ns for row in rows), tuple(float(row.made) for row in rows))


def _read_zombies(recording: Recording, _: str, window: Window, seen: Coverage) -> Series:
    counted = read_dying(recording, window)
    return Series(seen, readings=tuple((time_ns, float(dying)) for time_ns, dying in counted))


def _read_walks(recording: Recording, _: str, window: Window, seen: Coverage) -> Series:
    rows = recording.rows(MemoryCgroupsRow, window)
    walks = sorted((row.time_ns, row.walk_ns / 1e9) for row in rows if row.walk_ns is not None)
    return Series(seen, readings=tuple(walks))


def _read_pegged(recording: Recording, _: str, window: Window, seen: Coverage) -> Series:
    events = recording.events(window, "core_held")
    lengths = [(each.time_ns, each.get(PeggedCoreDetails).seconds or 0.0) for each in events]
    return Series(seen, tuple(time for time, _ in lengths), tuple(each for _, each in lengths))


def _read_resets(recording: Recording, _: str, window: Window, seen: Coverage) -> Series:
    events = recording.events(window, "nic_reset")
    if not events:  # some drivers log only the timeout that leads to one
        events = recording.events(window, "nic_tx_timeout")
    return _of_events(_first_of_each(events), seen)


def _read_job_failures(recording: Recording, _: str, window: Window, seen: Coverage) -> Series:
    return _of_events(recording.events(window, "job_failed"), seen)


def _first_of_each(events: Iterable[Event]) -> list[Event]:
    """Return the first event of each incident: a reset is often followed by others."""
    first: list[Event] = []
    last_ns: int | None = None
    for event in events:
        if last_ns is None or event.time_ns - last_ns > _ONE_INCIDENT_NS:
            first.append(event)
        last_ns = event.time_ns
    return first


def _of_events(events: Iterable[Event], seen: Coverage) -> Series:
    times = tuple(sorted(each.time_ns for each in events))
    return Series(seen, times, (1.0,) * len(times))


_Reader = Callable[[Recording, str, Window, Coverage], Series]
_READERS: Mapping[str, _Reader] = {
    "unit_restarts": _read_unit_starts,
    "child_failures": _read_child_failures,
    "container_restarts": _read_container_starts,
    "oom_kills": _read_oom_kills,
    "cgroups_made": _read_cgroups_made,
    "zombies": _read_zombies,
    "walk_s": _read_walks,
    "pegged_s": _read_pegged,
    "resets": _read_resets,
    "job_failures": _read_job_failures,
}
# The table that tells whether anybody looked.
_TABLES = {
    "unit_restarts": "units",
    "child_failures": "units",
    "container_restarts": "containers",
    "oom_kills": "kernel_log",
    "cgroups_made": "cgroup_churn",
    "zombies": "memory_cgroups",
    "walk_s": "memory_cgroups",
    "pegged_s": "cores",
    "resets": "kernel_log",
    "job_failures": "events",
}
