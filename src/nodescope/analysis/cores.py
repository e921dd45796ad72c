"""Per-core time: shares of each interval a core spent in each state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodescope.analysis.tree import I64

STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CoreReadings:
    """Counters of `/proc/stat` as recorded: rows sorted by core and time."""

    cpu: I64
    time_ns: I64  # wall
    ticks: I64  # rows × STATES


@dataclass(frozen=True, slots=True)
class CoreShares:
    """`shares[state][cpu][column]`, NaN where nothing was read."""

    from_ns: int
    interval_ns: int
    cpus: list[int]
    shares: dict[str, F64]


def derive_shares(
    parts: Iterable[CoreReadings], from_ns: int, to_ns: int, interval_ns: int
) -> CoreShares:
    """Shares by core and interval; a reading's share goes to the intervals it spans."""
    readings = list(parts)
    cpus = sorted({int(cpu) for part in readings for cpu in np.unique(part.cpu)})
    columns = max(1, -(-(to_ns - from_ns) // interval_ns))
    spent = np.zeros((len(STATES), len(cpus) * columns))
    row_of = {cpu: row for row, cpu in enumerate(cpus)}
    for part in readings:
        same = np.flatnonzero((np.diff(part.cpu) == 0) & (np.diff(part.time_ns) > 0))
        used = part.ticks[same + 1] - part.ticks[same]
        # A core that was offline starts its counters again: no rate across that.
        sound = (used >= 0).all(axis=1)
        same, used = same[sound], used[sound]
        rows = np.array([row_of[int(cpu)] for cpu in part.cpu[same]], np.int64)
        # A reading tells of the time since the one before: it is placed in its middle.
        middle = (part.time_ns[same] + part.time_ns[same + 1]) // 2
        column = (middle - from_ns) // interval_ns
        inside = (column >= 0) & (column < columns)
        at = (rows * columns + column)[inside]
        for state in range(len(STATES)):
            spent[state] += np.bincount(at, used[inside, state], spent.shape[1])
    total = spent.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(total > 0, spent / total, np.nan)
    shaped = shares.reshape(len(STATES), len(cpus), columns)
    return CoreShares(
        from_ns, interval_ns, cpus, {name: shaped[i] for i, name in enumerate(STATES)}
    )
