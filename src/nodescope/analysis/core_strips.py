"""Core times as a strip to look at: one byte per core, state and reading.

A strip is made once of a segment and serves every zoom: a column of a picture is the
*peak* of the readings in it, so that one core held for one second stays visible in
twelve hours of 96 cores. A byte is 0 where nothing is known and 1 + 254 × the share
else, so that the peak is the largest byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodescope.arrays import F32, I64, U8
from nodescope.recording.core_readings import STATES

SHOWN = (*STATES, "total", "kernel")
FULL = 254  # a share of one
_LEVELS = np.float32(FULL)
_KERNEL = [STATES.index(state) for state in ("system", "irq", "softirq")]
_IDLE = [STATES.index(state) for state in ("idle", "iowait")]


@dataclass(frozen=True, slots=True)
class Edge:
    """One reading of all cores: where a strip starts or ends."""

    time_ns: int
    cpus: I64
    ticks: I64  # STATES × cores


@dataclass(frozen=True, slots=True)
class Strip:
    """`shares[state][core][reading]`; a reading is about the time from `begin` to `end`."""

    cpus: I64
    begin_ns: I64
    end_ns: I64
    shares: U8
    means: F32  # [state][reading], of all cores; NaN where nothing is known
    first: Edge | None = None
    last: Edge | None = None

    @property
    def bytes(self) -> int:
        """Return the memory it takes."""
        return self.shares.nbytes + self.means.nbytes + 2 * self.begin_ns.nbytes + 4096


def make_strip(cpu: I64, time_ns: I64, ticks: I64) -> Strip:
    """The strip of readings sorted by core and time; `ticks` are STATES × readings."""
    if not len(cpu):
        empty = np.empty(0, np.int64)
        shape = (len(SHOWN), 0)
        return Strip(empty, empty, empty, np.zeros((*shape, 0), np.uint8), np.zeros(shape, "f4"))
    cpus, starts = np.unique(cpu, return_index=True)
    times, grid = _grid(cpu, time_ns, ticks, cpus, starts)
    shares, means = _shares(np.diff(grid, axis=2), grid[0, :, :-1] >= 0)
    return Strip(
        cpus,
        times[:-1],
        times[1:],
        shares,
        means,
        _edge(times[0], cpus, grid[:, :, 0]),
        _edge(times[-1], cpus, grid[:, :, -1]),
    )


def _edge(time_ns: np.int64, cpus: I64, ticks: I64) -> Edge:
    known = ticks[0] >= 0
    return Edge(int(time_ns), cpus[known], ticks[:, known].copy())


def _grid(cpu: I64, time_ns: I64, ticks: I64, cpus: I64, starts: I64) -> tuple[I64, I64]:
    """The times of readings, and ticks by state, core and time, -1 where a core has none."""
    count = len(cpu) // len(cpus)
    if count * len(cpus) == len(cpu) and (np.diff(starts) == count).all():
        by_core = time_ns.reshape(len(cpus), count)
        if (by_core == by_core[0]).all():  # the usual case: all cores are read at once
            return by_core[0], ticks.reshape(len(ticks), len(cpus), count)
    times, place = np.unique(time_ns, return_inverse=True)
    grid = np.full((len(ticks), len(cpus), len(times)), -1, np.int64)
    grid[:, np.searchsorted(cpus, cpu), place] = ticks
    # A core that was not read at one time is measured from the time before.
    known = grid[0] >= 0
    before = np.maximum.accumulate(np.where(known, np.arange(len(times)), -1), axis=1)
    filled = np.take_along_axis(grid, np.maximum(before, 0)[None], axis=2)
    return times, np.where(before < 0, -1, filled)


def _shares(used: I64, known: npt.NDArray[np.bool_]) -> tuple[U8, F32]:
    """Bytes and means of ticks used: STATES × cores × readings."""
    ticks = used.astype(np.float32)
    total = ticks.sum(axis=0)
    # Counters that fell were started again; a core that used nothing was not read.
    sound = known & (total > 0) & (used.min(axis=0) >= 0)
    ratios = np.empty((len(SHOWN), *total.shape), np.float32)
    scale = np.divide(np.float32(1), total, out=np.zeros_like(total), where=sound)
    np.multiply(ticks, scale, out=ratios[: len(STATES)])
    busy, kernel = ratios[len(STATES) :]
    np.clip(1 - ratios[_IDLE].sum(axis=0), 0, 1, out=busy)
    np.sum(ratios[_KERNEL], axis=0, out=kernel)
    shares = ((ratios * _LEVELS + np.float32(1.5)) * sound).astype(np.uint8)
    count = sound.sum(axis=0)
    busy *= sound
    sums = ratios.sum(axis=1)
    means = np.divide(sums, count, out=np.full(sums.shape, np.nan, np.float32), where=count > 0)
    return shares, means


def join_strips(before: Strip, after: Strip) -> Strip | None:
    """The reading between the last of one strip and the first of the next."""
    last, first = before.last, after.first
    if last is None or first is None or first.time_ns <= last.time_ns:
        return None
    cpus = np.intersect1d(last.cpus, first.cpus)
    if not len(cpus):
        return None
    used = (
        first.ticks[:, np.searchsorted(first.cpus, cpus)]
        - last.ticks[:, np.searchsorted(last.cpus, cpus)]
    )
    shares, means = _shares(used[:, :, None], np.ones((len(cpus), 1), bool))
    begin, end = np.array([last.time_ns]), np.array([first.time_ns])
    return Strip(cpus, begin, end, shares, means)


@dataclass(frozen=True, slots=True)
class Peaks:
    """`shares[core][column]`, 0 to 254, 255 where nothing is known; and the node's mean."""

    cpus: list[int]
    shares: U8
    average: U8


def find_peaks(
    strips: Sequence[Strip], state: str, from_ns: int, column_ns: int, columns: int
) -> Peaks:
    """The peak of each column; one without a reading takes the reading its middle lies in."""
    number = SHOWN.index(state)
    strips = [strip for strip in strips if len(strip.begin_ns)]
    if not strips:
        return Peaks([], np.empty((0, columns), np.uint8), np.full(columns, 255, np.uint8))
    cpus = np.unique(np.concatenate([strip.cpus for strip in strips]))
    begin = np.concatenate([strip.begin_ns for strip in strips])
    end = np.concatenate([strip.end_ns for strip in strips])
    shares = _side_by_side([strip.shares[number] for strip in strips], strips, cpus)
    means = np.concatenate([strip.means[number] for strip in strips])
    order = np.argsort(end, kind="stable")
    if (np.diff(end) < 0).any():  # a clock that was set back
        begin, end, shares, means = begin[order], end[order], shares[:, order], means[order]
    column = (begin + (end - begin) // 2 - from_ns) // column_ns
    inside = np.flatnonzero((column >= 0) & (column < columns))
    peaks = np.zeros((len(cpus), columns), np.uint8)
    average = np.full(columns, np.nan, np.float32)
    if len(inside):
        inside = inside[np.argsort(column[inside], kind="stable")]
        found, starts = np.unique(column[inside], return_index=True)
        peaks[:, found] = np.maximum.reduceat(shares[:, inside], starts, axis=1)
        average[found] = _mean_of_runs(means[inside], starts)
    _fill(peaks, average, shares, means, begin, end, from_ns, column_ns)
    coded = np.where(np.isnan(average), 255, np.rint(average * _LEVELS)).astype(np.uint8)
    return Peaks(cpus.tolist(), peaks - np.uint8(1), coded)


def _mean_of_runs(values: F32, starts: I64) -> F32:
    known = ~np.isnan(values)
    sums = np.add.reduceat(np.where(known, values, 0), starts)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    return np.divide(sums, counts, out=np.full(len(sums), np.nan, np.float32), where=counts > 0)


def _fill(
    peaks: U8, average: F32, shares: U8, means: F32, begin: I64, end: I64, from_ns: int, step: int
) -> None:
    """Give columns narrower than a reading the reading around them."""
    empty = np.flatnonzero(~peaks.any(axis=0))
    middle = from_ns + empty * step + step // 2
    place = np.searchsorted(end, middle, side="right")
    there = place < len(end)
    there[there] = begin[place[there]] <= middle[there]
    empty, place = empty[there], place[there]
    peaks[:, empty] = shares[:, place]
    average[empty] = means[place]


def _side_by_side(parts: Sequence[U8], strips: Sequence[Strip], cpus: I64) -> U8:
    if all(len(strip.cpus) == len(cpus) for strip in strips):
        return np.concatenate(parts, axis=1)
    joined = np.zeros((len(cpus), sum(part.shape[1] for part in parts)), np.uint8)
    at = 0
    for part, strip in zip(parts, strips, strict=True):
        joined[np.searchsorted(cpus, strip.cpus), at : at + part.shape[1]] = part
        at += part.shape[1]
    return joined
