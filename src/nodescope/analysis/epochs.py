"""Event-triggered averages: what precedes an event that recurs, and by how long.

Each metric is ranked over the whole recording and mapped to a normal scale, so that
heavy tails count no more than they should; around every event the same lags are cut
out and averaged. Whether the largest average means anything is asked of the same
recording with all events shifted together, round and round by every second: that keeps
their spacing and the metric's own rhythm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]

LAGS = (-120, 30)  # seconds
FEWEST = 3  # events


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one metric does around the events."""

    lag_s: int  # of the largest average
    average: float  # there, in standard deviations of the metric's own ranks
    p: float
    events: int  # those far enough from the ends to count


def normal_ranks(values: F64) -> F64:
    """Ranks on a normal scale; ties share the mean of theirs, what is missing is 0."""
    scaled = np.zeros(len(values))
    present = ~np.isnan(values)
    count = int(present.sum())
    if not count:
        return scaled
    unique, inverse, counts = np.unique(values[present], return_inverse=True, return_counts=True)
    if len(unique) == 1:
        return scaled
    ends = np.cumsum(counts)
    middle = ends - (counts + 1) / 2  # mean rank of each value, from 0
    scaled[present] = _normal_quantile((middle + 0.5) / count)[inverse]
    return scaled


def _normal_quantile(p: F64) -> F64:
    """The inverse of the normal distribution (Abramowitz and Stegun 26.2.23: 4.5e-4)."""
    tail = np.minimum(p, 1 - p)
    t = np.sqrt(-2 * np.log(tail))
    over = 2.515517 + t * (0.802853 + t * 0.010328)
    under = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    quantile: F64 = np.where(p < 0.5, -1.0, 1.0) * (t - over / under)
    return quantile


def average_epochs(values: F64, events: I64) -> Epoch | None:
    """The average of a metric (a value per second) around events (row numbers of it).

    None if there are too few events, or nothing that varies.
    """
    first, last = LAGS
    margin, length = last - first, len(values)
    inside = events[(events + first >= 0) & (events + last < length)]
    if len(inside) < FEWEST or length <= 2 * margin:
        return None
    ranks = normal_ranks(values)
    if not ranks.any():
        return None
    # Averages at every shift of the events, the recording taken as a ring.
    ring = np.zeros(length)
    for event in inside.tolist():
        ring += np.roll(ranks, -event)
    ring /= len(inside)
    averages = ring[np.arange(first, last)]
    best = int(np.abs(averages).argmax())
    around = np.abs(np.concatenate((ring, ring[: margin - 1])))
    largest = np.lib.stride_tricks.sliding_window_view(around, margin).max(axis=1)
    # Windows that begin `margin` or more from our own: they share nothing with it.
    shifted = np.roll(largest, -first)[margin : length - margin]
    p = (1 + int((shifted >= abs(averages[best])).sum())) / (1 + len(shifted))
    return Epoch(first + best, float(averages[best]), p, len(inside))


def stouffer(ps: list[float]) -> float:
    """One probability of several independent ones, each one-sided."""
    values = np.clip(np.array(ps, np.float64), 1e-15, 1 - 1e-15)
    total = float(-_normal_quantile(values).sum() / np.sqrt(len(values)))
    return _upper_tail(total)


def _upper_tail(z: float) -> float:
    """The probability of more than z on the normal scale."""
    return 0.5 * math.erfc(z / math.sqrt(2))
