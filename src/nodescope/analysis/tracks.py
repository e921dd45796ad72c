"""Lines over time: zombies, pressure, blocked tasks, memory, disks, network; declared as data.

A track is read as pairs of time and value. Gauges are levels; counters are made into
a rate, or into the share of time they count, between one reading and the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nodescope.arrays import F64, I64
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Part


@dataclass(frozen=True, slots=True)
class Track:
    """The declaration of a line: its title, and where it is recorded."""

    name: str
    title: str
    unit: str
    group: str
    table: str
    column: str
    kind: Literal["gauge", "rate"] = "gauge"
    where: tuple[tuple[str, str], ...] = ()  # columns that must have these values
    scale: float = 1.0
    added_over: str = ""  # the column whose subjects are added up, such as all network devices
    counted_over: str = ""  # the column whose subjects are counted while each lasts


def _pressure(resource: str, which: str) -> Track:
    waited = "some task" if which == "some" else "every task"
    return Track(
        f"pressure.{resource}.{which}",
        f"{resource}: {waited} waited",
        "share of time",
        "pressure",
        "pressure",
        f"{which}_us",
        "rate",
        (("cgroup", ""), ("resource", resource)),
        1e-6,
    )


def _memory(name: str, title: str, source: str, *, rate: bool = False) -> Track:
    return Track(
        name, title, "per second" if rate else "bytes", "memory", "memory", "value",
        "rate" if rate else "gauge", (("name", source),),
    )  # fmt: skip


def _disk(name: str, title: str, source: str) -> Track:
    # /proc/vmstat counts in KiB what was read from and written to block devices.
    return Track(
        name, title, "bytes per second", "disks", "memory", "value", "rate",
        (("name", source),), 1024.0,
    )  # fmt: skip


def _network(name: str, title: str, column: str) -> Track:
    return Track(
        name, title, "bytes per second", "network", "nics", column, "rate", added_over="nic"
    )


TRACKS: dict[str, Track] = {
    track.name: track
    for track in (
        Track("zombies.tracked", "memory cgroups tracked", "cgroups", "zombies",
              "memory_cgroups", "tracked"),
        Track("zombies.visible", "of them visible", "cgroups", "zombies",
              "memory_cgroups", "visible"),
        Track("zombies.dying", "removed and still held", "cgroups", "zombies",
              "memory_cgroups", "dying"),
        Track("zombies.walk", "time of one walk over all", "ms", "zombies",
              "memory_cgroups", "walk_ns", scale=1e-6),
        _pressure("cpu", "some"),
        _pressure("memory", "some"),
        _pressure("memory", "full"),
        _pressure("io", "some"),
        _pressure("io", "full"),
        _pressure("irq", "full"),
        Track("blocked.tasks", "tasks blocked for over a second", "tasks", "blocked",
              "blocked_tasks", "blocked_ns", counted_over="tid"),
        _memory("memory.available", "memory available", "MemAvailable"),
        _memory("memory.reclaim", "pages scanned by direct reclaim", "pgscan_direct", rate=True),
        _memory("memory.major_faults", "faults that read the disk", "pgmajfault", rate=True),
        _disk("disks.read", "read from disks", "pgpgin"),
        _disk("disks.written", "written to disks", "pgpgout"),
        _network("network.received", "received by network devices", "rx_bytes"),
        _network("network.sent", "sent by network devices", "tx_bytes"),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Readings:
    """Raw values of one track in one segment, in the order of time."""

    time_ns: I64  # wall
    value: F64

    @property
    def bytes(self) -> int:
        return self.time_ns.nbytes + self.value.nbytes + 200


def read_tracks(segment: Part) -> dict[str, Readings]:
    """Every track that a segment has readings of."""
    found: dict[str, Readings] = {}
    tables: dict[str, _TrackTable] = {}
    for track in TRACKS.values():
        if track.table not in segment.description.tables:
            continue
        if track.table not in tables:
            tables[track.table] = _TrackTable(segment, track.table)
        readings = tables[track.table].read(track)
        if readings is not None:
            found[track.name] = readings
    return found


class _TrackTable:
    """One table of a segment, its columns read once for all of its tracks."""

    def __init__(self, segment: Part, name: str) -> None:
        tracks = [track for track in TRACKS.values() if track.table == name]
        keys = {key for track in tracks for key, _ in track.where}
        keys |= {track.added_over for track in tracks if track.added_over}
        keys |= {track.counted_over for track in tracks if track.counted_over}
        values = {track.column for track in tracks}
        content = segment.read(name, ["time_ns", *sorted(keys | values)])
        self._from_ns = segment.wall_from_ns
        self._times = segment.wall_ns(content.column("time_ns").to_numpy())
        self._keys = {key: content.column(key).to_numpy() for key in keys}
        self._values = {
            value: content.column(value).to_numpy(zero_copy_only=False).astype(np.float64)
            for value in values
        }

    def read(self, track: Track) -> Readings | None:
        value = self._values[track.column]
        chosen = ~np.isnan(value)
        for key, wanted in track.where:
            chosen &= self._keys[key] == wanted
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return None
        rows = rows[np.argsort(self._times[rows], kind="stable")]
        times, values = self._times[rows], value[rows] * track.scale
        if track.counted_over:
            subjects = self._keys[track.counted_over][rows]
            times, values = _count_lasting(times, values, subjects, self._from_ns)
        if track.added_over:
            times, values = _add_up(times, values, self._keys[track.added_over][rows])
        return Readings(times, values)


def _add_up(times: I64, values: F64, subjects: npt.NDArray[Any]) -> tuple[I64, F64]:
    """Add the latest readings of all subjects, at each time at which one was read."""
    at = np.unique(times)
    total = np.zeros(len(at))
    for subject in set(subjects.tolist()):
        own = np.flatnonzero(subjects == subject)
        latest = np.searchsorted(times[own], at, "right") - 1
        total += np.where(latest >= 0, values[own][np.maximum(latest, 0)], 0.0)
    return at, total


def _count_lasting(
    times: I64, lasted_ns: F64, subjects: npt.NDArray[Any], from_ns: int
) -> tuple[I64, F64]:
    """Count the subjects that last, second by second: each row is the end of a span so far."""
    begin = np.maximum(times - lasted_ns.astype(np.int64), from_ns)
    seconds = np.arange(begin.min() - SECOND_NS, times.max() + 2 * SECOND_NS, SECOND_NS)
    total = np.zeros(len(seconds))
    for subject in set(subjects.tolist()):
        own = np.flatnonzero(subjects == subject)
        inside = np.zeros(len(seconds), bool)
        for first, last in zip(begin[own].tolist(), times[own].tolist(), strict=True):
            inside |= (seconds >= first) & (seconds <= last)
        total += inside
    return seconds, total


@dataclass(frozen=True, slots=True)
class TrackLine:
    """`most` and `mean` of each column; NaN where nothing is known."""

    most: F64
    mean: F64


def draw_line(
    parts: Sequence[Readings], kind: str, from_ns: int, column_ns: int, columns: int
) -> TrackLine:
    """A track in columns; one between two readings takes the later one."""
    most, mean = np.full(columns, np.nan), np.full(columns, np.nan)
    if not parts:
        return TrackLine(most, mean)
    times = np.concatenate([part.time_ns for part in parts])
    values = np.concatenate([part.value for part in parts])
    order = np.argsort(times, kind="stable")
    begin, times, values = _steps(times[order], values[order], kind)
    column = (times - from_ns) // column_ns
    inside = np.flatnonzero((column >= 0) & (column < columns))
    if len(inside):
        found, starts = np.unique(column[inside], return_index=True)
        most[found] = np.maximum.reduceat(values[inside], starts)
        counts = np.diff(np.append(starts, len(inside)))
        mean[found] = np.add.reduceat(values[inside], starts) / counts
    _fill(most, mean, begin, times, values, from_ns, column_ns)
    return TrackLine(most, mean)


def _steps(times: I64, values: F64, kind: str) -> tuple[I64, I64, F64]:
    """Since when, until when, and what: a reading is about the time since the one before."""
    apart = np.diff(times)
    if kind == "rate":
        risen = np.diff(values)
        sound = (apart > 0) & (risen >= 0)  # a counter that fell was started again
        rates = risen[sound] / apart[sound] * SECOND_NS
        return times[:-1][sound], times[1:][sound], rates
    return np.append(times[:1], times[:-1]), times, values


_HOLE = 6  # times the usual distance between readings: longer is a hole, not a line


def _fill(
    most: F64, mean: F64, begin: I64, end: I64, values: F64, from_ns: int, column_ns: int
) -> None:
    if len(end) < 2:
        return
    apart = end - begin
    usual = max(float(np.median(apart[apart > 0])), 1.0) if (apart > 0).any() else 1.0
    empty = np.flatnonzero(np.isnan(most))
    middle = from_ns + empty * column_ns + column_ns // 2
    place = np.searchsorted(end, middle)
    there = place < len(end)
    spans = (end - begin)[place[there]]
    there[there] = (begin[place[there]] <= middle[there]) & (spans <= _HOLE * usual)
    most[empty[there]] = mean[empty[there]] = values[place[there]]


def known_tracks(parts: Sequence[Mapping[str, Readings]]) -> list[Track]:
    """The tracks that any of these segments has readings of."""
    names = {name for part in parts for name in part}
    return [track for name, track in TRACKS.items() if name in names]
