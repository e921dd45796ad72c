"""Per-core time: shares of each interval a core spent in each state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from nodescope.arrays import F64, I64
from nodescope.numbering import group
from nodescope.recording.core_readings import STATES, CoreReadings


@dataclass(frozen=True, slots=True)
class CoreShares:
    """`shares[state][cpu][column]`, NaN where nothing was read."""

    from_ns: int
    interval_ns: int
    cpus: list[int]
    shares: dict[str, F64]

    @property
    def busy(self) -> F64:
        """Return the share that was neither idle nor waiting for a disk."""
        return np.clip(1.0 - self.shares["idle"] - self.shares["iowait"], 0.0, 1.0)


def derive_shares(
    parts: Iterable[CoreReadings],
    from_ns: int,
    to_ns: int,
    interval_ns: int,
    only: Collection[int] | None = None,
) -> CoreShares:
    """Shares by core and interval; of all cores, or `only` some.

    A reading tells of the time since the one before. It counts in the interval its
    middle lies in; an interval without such a reading (they are not on the second)
    takes the one its own middle lies in.
    """
    # The middle of an interval decides, also of the last one.
    columns = max(1, (to_ns - from_ns + interval_ns // 2) // interval_ns)
    spent: dict[int, F64] = {}  # by core: STATES × columns
    around: dict[int, F64] = {}
    for part in parts:
        following = (np.diff(part.cpu) == 0) & (np.diff(part.time_ns) > 0)
        if only is not None:
            following &= np.isin(part.cpu[1:], sorted(only))
        same = np.flatnonzero(following)
        used = part.ticks[same + 1] - part.ticks[same]
        # A core that was offline starts its counters again: no rate across that.
        same, used = same[sound := (used >= 0).all(axis=1)], used[sound]
        begin, end = part.time_ns[same] - from_ns, part.time_ns[same + 1] - from_ns
        middle = (begin + end) // 2 // interval_ns
        first = -((interval_ns // 2 - begin) // interval_ns)
        last = -((interval_ns // 2 - end) // interval_ns)  # excluded
        first, last = np.clip(first, 0, columns), np.clip(last, 0, columns)
        many = np.arange((last - first).sum()) - np.repeat(
            np.cumsum(last - first) - (last - first), last - first
        )
        spread = np.repeat(np.arange(len(same)), last - first)
        _add(spent, part.cpu[same], middle, used, columns)
        _add(around, part.cpu[same][spread], first[spread] + many, used[spread], columns)
    cpus = sorted(spent.keys() | around.keys())
    shaped = np.full((len(STATES), len(cpus), columns), np.nan)
    for row, cpu in enumerate(cpus):
        none = np.zeros((len(STATES), columns))
        own, other = spent.get(cpu, none), around.get(cpu, none)
        ticks = np.where(own.sum(axis=0) > 0, own, other)
        total = ticks.sum(axis=0)
        np.divide(ticks, total, out=shaped[:, row], where=total > 0)
    return CoreShares(
        from_ns, interval_ns, cpus, {name: shaped[i] for i, name in enumerate(STATES)}
    )


def keep_cores(shares: CoreShares, wanted: Collection[int]) -> CoreShares:
    """Only some of the cores."""
    rows = [row for row, cpu in enumerate(shares.cpus) if cpu in wanted]
    kept = {name: values[rows] for name, values in shares.shares.items()}
    return CoreShares(shares.from_ns, shares.interval_ns, [shares.cpus[row] for row in rows], kept)


def coarsen(shares: CoreShares) -> CoreShares:
    """Half as many intervals of twice the length, each the mean of the two."""
    halved = {}
    for name, values in shares.shares.items():
        if values.shape[1] % 2:
            values = np.append(values, np.full((len(values), 1), np.nan), axis=1)
        one, two = values[:, ::2], values[:, 1::2]
        both = (one + two) / 2
        halved[name] = np.where(np.isnan(both), np.where(np.isnan(one), two, one), both)
    return CoreShares(shares.from_ns, 2 * shares.interval_ns, shares.cpus, halved)


def _add(sums: dict[int, F64], cpu: I64, column: I64, used: I64, columns: int) -> None:
    """Add up ticks by core, state and column."""
    inside = (column >= 0) & (column < columns)
    cpu, column, used = cpu[inside], column[inside], used[inside]
    if not len(cpu):
        return
    low, width = int(column.min()), int(column.max() - column.min()) + 1
    numbers, start, _ = group(cpu)  # sorted by core: runs
    for number, rows in zip(
        numbers.tolist(), np.split(np.arange(len(cpu)), start[1:]), strict=True
    ):
        into = sums.setdefault(number, np.zeros((len(STATES), columns)))
        for state in range(len(STATES)):
            into[state, low : low + width] += np.bincount(
                column[rows] - low, used[rows, state], width
            )
