"""Readings of `/proc/stat` as recorded: raw counters by core and time."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nodescope.arrays import I64
from nodescope.errors import UsageError
from nodescope.numbering import distinct
from nodescope.quantities import SECOND_NS, format_cpu_list
from nodescope.recording.part import Part, Parts, overlapping
from nodescope.recording.read_ahead import read_ahead
from nodescope.records.recorder_tables import CORE_STATES

if TYPE_CHECKING:
    from nodescope.recording.window import Window

STATES = CORE_STATES[:8]  # time of guests is in `user` and `nice` already
NEIGHBOUR_NS = 10 * SECOND_NS  # a rate at the edge of a window needs the reading beyond it


@dataclass(frozen=True, slots=True)
class CoreReadings:
    """Counters of `/proc/stat` as recorded: rows sorted by core and time."""

    cpu: I64
    time_ns: I64  # wall
    ticks: I64  # rows × STATES; each state lies together, as all that reads them goes by state

    def take(self, rows: I64) -> CoreReadings:
        """Return some of them."""
        ticks = self.ticks.T.take(rows, axis=1).T
        return CoreReadings(self.cpu[rows], self.time_ns[rows], ticks)


def read_core_readings(parts: Parts, window: Window) -> Iterator[CoreReadings]:
    """Read what was recorded of core time, from the reading before the window to the one after.

    Each part starts with the last reading of the part before, if the same run of
    the recorder made both: a segment's end is no hole.
    """
    wide = window.widened(NEIGHBOUR_NS)
    before: CoreReadings | None = None
    run: tuple[str, int] | None = None
    for part, readings in read_ahead(overlapping(parts, wide), lambda part: _read(part, wide)):
        same = run == part.description.run
        run = part.description.run
        if same and before is not None and len(before.cpu):
            readings = _joined(before, readings)
        if len(readings.cpu):
            yield readings
            last = np.flatnonzero(np.append(np.diff(readings.cpu) != 0, True))
            before = readings.take(last)


def count_cores(parts: Parts, window: Window) -> int:
    """Return how many cores the window's first readings are of; 1 if there are none."""
    for part in overlapping(parts, window):
        cpu = part.read("cores", ["cpu"]).column("cpu").to_numpy()
        if len(cpu):
            return len(distinct(cpu))
    return 1


def check_cores(parts: Parts, wanted: Set[int]) -> None:
    """Raise `UsageError` with the cores there are if one of the wanted was not recorded."""
    known = find_cores(parts, wanted)
    if missing := sorted(wanted - known):
        names = f"{'cores' if len(missing) > 1 else 'core'} {format_cpu_list(missing)}"
        raise UsageError(
            f"the recording has no {names}",
            hint=f"cores here: {format_cpu_list(sorted(known)) or 'none was recorded'}",
        )


def find_cores(parts: Parts, wanted: Set[int]) -> set[int]:
    """Return the cores with readings or samples, of as many parts as hold the wanted ones."""
    found: set[int] = set()
    for part in parts:
        for table in ("cores", "samples"):
            if wanted <= found:
                return found
            found |= set(distinct(part.read(table, ["cpu"]).column("cpu").to_numpy()).tolist())
    return found


def _read(part: Part, window: Window) -> CoreReadings:
    table = part.read("cores", ["cpu", "time_ns", *STATES])
    column = {name: table.column(name).to_numpy() for name in table.column_names}
    time_ns = part.wall_ns(column["time_ns"])
    ticks = np.empty((len(STATES), len(time_ns)), np.int64).T
    for number, state in enumerate(STATES):
        ticks[:, number] = column[state]
    readings = CoreReadings(column["cpu"].astype(np.int64), time_ns, ticks)
    inside = (time_ns >= window.from_ns) & (time_ns < window.to_ns)
    return readings if inside.all() else readings.take(np.flatnonzero(inside))


def _joined(before: CoreReadings, after: CoreReadings) -> CoreReadings:
    cpu = np.concatenate((before.cpu, after.cpu))
    time_ns = np.concatenate((before.time_ns, after.time_ns))
    ticks = np.concatenate((before.ticks.T, after.ticks.T), axis=1).T
    # Two sorted runs, which a stable sort takes advantage of.
    order = np.argsort(cpu, kind="stable")
    joined = CoreReadings(cpu, time_ns, ticks).take(order)
    later = np.diff(joined.time_ns) >= 0
    if (later | (np.diff(joined.cpu) != 0)).all():
        return joined
    return joined.take(np.lexsort((joined.time_ns, joined.cpu)))
