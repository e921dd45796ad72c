"""Event-triggered averages: what precedes an event that recurs, and by how long.

Each metric is ranked over the whole recording and mapped to a normal scale, so that
heavy tails count no more than they should; its level over the hours is taken away first,
or all that grows would stand out around events late in the recording. Around every event
the same lags are cut out and averaged. Whether the largest average means anything is
asked of the same recording with all events shifted together, round and round by every
second: that keeps their spacing and the metric's own rhythm. It does not keep the events
on the phase of a cycle, which is asked separately (`cycles`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nodescope.arrays import F64, I64, Bool
from nodescope.numbering import distinct

LAGS = (-120, 30)  # seconds
SPAN = LAGS[1] - LAGS[0]
FEWEST = 3  # events
LEVEL_S = 3000  # a level stands for about so long: far longer than the lags, and no usual period
GAP_S = 10  # a reading may come late; longer than this nobody looked
UNUSUAL = 1.0  # standard deviations: one event by itself is so far out in a sixth of all cases


@dataclass(frozen=True, slots=True)
class Epoch:
    """The course of one metric around the events."""

    lag_s: int  # of the largest average
    average: float  # there, in standard deviations of the metric's own ranks
    p: float
    events: int  # those seen whole: far enough from the ends and from gaps
    unusual: int  # of these: where the metric is out on that side at that lag


class Ranked:
    """A metric (a value per second) on a normal scale.

    Seconds that nobody recorded are left out and the rest closed over them, as a ring
    closes over the ends. Were they filled with something usual, shifted events would fall
    into them and find it quiet.
    """

    def __init__(self, values: F64) -> None:
        self.values = _without_level(values)
        self.ranks = normal_ranks(self.values)
        self.kept = ~_long_runs(np.isnan(values), GAP_S)
        self._kept_before = np.concatenate(([0], np.cumsum(self.kept)))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def tells(self) -> bool:
        """Return whether it varies, and was seen for long enough to be shifted."""
        return int(self._kept_before[-1]) > 2 * SPAN and bool(self.ranks.any())

    def whole(self, at: I64) -> Bool:
        """Which of these seconds have all their lags in the recording."""
        begin, end = at + LAGS[0], at + LAGS[1]
        inside: Bool = (begin >= 0) & (end <= len(self))
        begin, end = (np.clip(each, 0, len(self)) for each in (begin, end))
        inside &= self._kept_before[end] - self._kept_before[begin] == SPAN
        return inside

    def average(self, events: I64) -> Epoch:
        """Around events that are whole."""
        ring = _ring(self.ranks[self.kept], self._kept_before[events])
        averages = ring[np.arange(*LAGS)]
        best = int(np.abs(averages).argmax())
        lag_s, average = LAGS[0] + best, float(averages[best])
        # Windows that begin `SPAN` or more from our own: they share nothing with it.
        shifted = np.roll(_window_max(np.abs(ring)), -LAGS[0])[SPAN : len(ring) - SPAN]
        p = (1 + int((shifted >= abs(average)).sum())) / (1 + len(shifted))
        unusual = int((self.ranks[events + lag_s] * np.sign(average) >= UNUSUAL).sum())
        return Epoch(lag_s, average, p, len(events), unusual)


def whole_events(metric: Ranked, events: I64) -> I64:
    """The events (row numbers of the metric) that can be averaged; each second counts once."""
    seen = distinct(events)
    return seen[metric.whole(seen)]


def average_epochs(metric: Ranked, events: I64) -> Epoch | None:
    """The average of a metric around events.

    None if too few of them are whole, or nothing varies.
    """
    if not metric.tells:
        return None
    seen = whole_events(metric, events)
    return metric.average(seen) if len(seen) >= FEWEST else None


def _ring(ranks: F64, events: I64) -> F64:
    """Averages at every shift of the events, the recording taken as a ring."""
    length = len(ranks)
    twice = np.concatenate((ranks, ranks))
    ring = np.zeros(length)
    for event in events.tolist():
        ring += twice[event : event + length]
    ring /= len(events)
    return ring


def _window_max(ring: F64) -> F64:
    """The largest of each `SPAN` values on end, by windows that double."""
    length = len(ring)
    largest = np.concatenate((ring, ring[: SPAN - 1]))
    width = 1
    while width < SPAN:
        step = min(width, SPAN - width)
        largest = np.maximum(largest[:-step], largest[step:])
        width += step
    return largest[:length]


def _without_level(values: F64) -> F64:
    """Each value above the median of its part of the recording; steps stay steps."""
    left = values.copy()
    for part in np.array_split(left, max(1, round(len(values) / LEVEL_S))):
        known = part[~np.isnan(part)]
        if len(known):
            part -= np.median(known)
    return left


def _long_runs(missing: Bool, longest: int) -> Bool:
    """Where more than so many on end are missing."""
    edges = np.flatnonzero(np.diff(missing, prepend=False, append=False))
    begin, end = edges[::2], edges[1::2]
    long = np.zeros(len(missing), bool)
    for run in np.flatnonzero(end - begin > longest).tolist():
        long[begin[run] : end[run]] = True
    return long


def normal_ranks(values: F64) -> F64:
    """Ranks on a normal scale; ties share the mean of theirs, what is missing is 0."""
    scaled = np.zeros(len(values))
    present = ~np.isnan(values)
    count = int(present.sum())
    if not count:
        return scaled
    known = values[present]
    # Most metrics stand for seconds on end: it is their changes that are sorted.
    begin = np.flatnonzero(np.append(True, known[1:] != known[:-1]))
    lengths = np.diff(begin, append=count)
    unique, inverse = np.unique(known[begin], return_inverse=True)
    if len(unique) == 1:
        return scaled
    counts = np.bincount(inverse, weights=lengths)
    middle = np.cumsum(counts) - (counts + 1) / 2  # mean rank of each value, from 0
    scaled[present] = np.repeat(_normal_quantile((middle + 0.5) / count)[inverse], lengths)
    return scaled


def _normal_quantile(p: F64) -> F64:
    """The inverse of the normal distribution (Abramowitz and Stegun 26.2.23: 4.5e-4)."""
    tail = np.minimum(p, 1 - p)
    t = np.sqrt(-2 * np.log(tail))
    over = 2.515517 + t * (0.802853 + t * 0.010328)
    under = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    quantile: F64 = np.where(p < 0.5, -1.0, 1.0) * (t - over / under)
    return quantile


def stouffer(ps: list[float]) -> float:
    """One probability of several independent ones, each one-sided."""
    values = np.clip(np.array(ps, np.float64), 1e-15, 1 - 1e-15)
    total = float(-_normal_quantile(values).sum() / np.sqrt(len(values)))
    return _upper_tail(total)


def _upper_tail(z: float) -> float:
    """The probability of more than z on the normal scale."""
    return 0.5 * math.erfc(z / math.sqrt(2))
