"""How likely is this silence, if nothing was mended: of loops, and of levels that grow.

A loop that was not mended is silent for four reasons: by chance, because its rate varies,
because it rests longer now and then, or because whoever restarts it waits longer each time
(back-off). `silence_probability` is the largest of what each allows. The rate varies as it
did before (`overdispersion`, at the coarsest scale that shows any); the rests are at least
as long as the longest that was seen, with an exponential tail beyond; the back-off is the
longest that the restart policy allows.

A level that still grows looks flat by chance as often as blocks of the time before differ
among themselves (`flat_probability`): neighbours depend on one another, whole blocks hardly.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nodescope.analysis.exact_tests import count_below, student_below

USUAL_OVERDISPERSION = 0.1  # what is assumed of a rate until its own history shows it
UNKNOWN_OVERDISPERSION = 0.5  # … of a rate whose history nobody recorded
_FEW_OVERDISPERSION = 0.25  # … of one with a history too short to show it
_SCALES = (4, 6, 8, 12, 16, 24)  # blocks into which a history is divided
_PRIOR_BLOCKS = 4  # that the usual overdispersion is worth
_EULER = 0.5772156649
_FEWEST_BLOCKS = 4
_NEVER_S = 1e10
_NOISE = 1.5  # slopes of blocks half as long differ 2^1.5 times as much, where noise is white


@dataclass(frozen=True, slots=True)
class Recurrence:
    """How something that comes again and again did so while it was observed."""

    count: float
    exposure_s: float
    overdispersion: float = UNKNOWN_OVERDISPERSION
    longest_gap_s: float | None = None  # between two of them; None: only counted
    backoff_s: float = 0.0  # by how much the next wait may be longer than those seen

    @property
    def mean_gap_s(self) -> float:
        """Return the mean time from one to the next."""
        return self.exposure_s / self.count if self.count else math.inf


def silence_probability(known: Recurrence, silent_s: float, unbroken_s: float) -> float:
    """Return the largest probability of silence that a loop which goes on allows.

    `silent_s` is all the time that was observed, `unbroken_s` its longest part: what came
    while nobody looked was not seen.
    """
    return max(
        few_probability(known, 0, silent_s),
        _rest_probability(known, unbroken_s),
    )


def few_probability(known: Recurrence, count: int, observed_s: float) -> float:
    """Return P(at most `count` in that time), if it goes on; the rate itself is an estimate."""
    if known.count <= 0 or known.exposure_s <= 0:
        return 1.0
    seen = known.count + 0.5
    mean = observed_s / (known.exposure_s / seen + known.backoff_s)
    alpha = known.overdispersion
    return count_below(count, mean, alpha + (1 + alpha) / seen)


def _rest_probability(known: Recurrence, silent_s: float) -> float:
    """Return P(a rest as long as this), by the longest one that was seen."""
    if known.longest_gap_s is None or known.count < 2:
        return 0.0
    longest_s = known.longest_gap_s + known.backoff_s
    if silent_s <= longest_s:
        return 1.0
    # The longest of n exponential times is ln n + 0.58 times their mean: so heavy is the tail.
    scale_s = max(longest_s / (math.log(known.count + 1) + _EULER), 1e-9)
    falling = math.exp(-(silent_s - longest_s) / scale_s) / (known.count + 1)
    # The rest that begins before the remedy is a long one more often than any other.
    return min(1.0, falling * max(1.0, scale_s / known.mean_gap_s))


def estimate_overdispersion(times_s: Sequence[float], from_s: float, to_s: float) -> float:
    """Return how much the rate of events varies beyond chance, at the scale that shows most."""
    return max(
        (
            shrink_overdispersion(
                [float(count) for count in _counts(times_s, from_s, to_s, blocks)]
            )
            for blocks in _SCALES
            if len(times_s) >= blocks
        ),
        default=_FEW_OVERDISPERSION,
    )


def _counts(times_s: Sequence[float], from_s: float, to_s: float, blocks: int) -> list[int]:
    counts = [0] * blocks
    for time_s in times_s:
        at = int((time_s - from_s) / (to_s - from_s) * blocks)
        if 0 <= at < blocks:
            counts[at] += 1
    return counts


def shrink_overdispersion(counts: Sequence[float], usual: float = USUAL_OVERDISPERSION) -> float:
    """Return the overdispersion of counts, drawn towards what is usual where they are few."""
    mean = sum(counts) / len(counts)
    if mean <= 0:
        return UNKNOWN_OVERDISPERSION
    variance = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)
    own = max(0.0, (variance - mean) / mean**2)
    weight = len(counts) - 1
    return (_PRIOR_BLOCKS * usual + weight * own) / (weight + _PRIOR_BLOCKS)


def longest_gap(times: Sequence[float]) -> float | None:
    """Return the longest time from one to the next; None from fewer than two."""
    ordered = sorted(times)
    return max((later - earlier for earlier, later in pairwise(ordered)), default=None)


# -- levels ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slope:
    """How fast a level moved, and by how much that differed from block to block."""

    per_s: float
    sd_per_s: float
    block_s: float
    blocks: int


def find_slope(times_s: Sequence[float], values: Sequence[float]) -> Slope | None:
    """Return the slope of a level by blocks of its time; None from too few readings.

    Of several ways to divide the time the one whose blocks differ most counts.
    """
    found = [
        slope
        for blocks in _SCALES
        if len(times_s) >= 2 * blocks
        for slope in [_by_blocks(times_s, values, blocks)]
        if slope is not None
    ]
    if not found:
        return _by_blocks(times_s, values, _FEWEST_BLOCKS)
    return max(found, key=lambda each: (each.sd_per_s * each.block_s**0.5, each.blocks))


def _by_blocks(times_s: Sequence[float], values: Sequence[float], blocks: int) -> Slope | None:
    if len(times_s) <= blocks or times_s[-1] <= times_s[0]:
        return None
    length_s = (times_s[-1] - times_s[0]) / blocks
    marks = [_at(times_s, values, times_s[0] + length_s * at) for at in range(blocks + 1)]
    slopes = [(later - earlier) / length_s for earlier, later in pairwise(marks)]
    mean = sum(slopes) / blocks
    variance = sum((slope - mean) ** 2 for slope in slopes) / (blocks - 1)
    return Slope(mean, math.sqrt(variance), length_s, blocks)


def _at(times_s: Sequence[float], values: Sequence[float], time_s: float) -> float:
    """Return the level at a time, on the line between the readings around it."""
    at = min(max(bisect_left(times_s, time_s), 1), len(times_s) - 1)
    earlier, later = times_s[at - 1], times_s[at]
    share = (time_s - earlier) / (later - earlier) if later > earlier else 1.0
    return values[at - 1] + min(max(share, 0.0), 1.0) * (values[at] - values[at - 1])


def flat_probability(before: Slope, after_per_s: float, after_s: float) -> float:
    """Return P(a slope as low as this one over that time), if the level grows as before."""
    if before.per_s <= 0 or after_s <= 0 or before.blocks < 2:
        return 1.0
    shorter = max(1.0, before.block_s / after_s) ** _NOISE
    variance = (before.sd_per_s * shorter) ** 2 * (1 + 1 / before.blocks)
    variance += before.per_s / after_s  # zombies come one by one, as chance wants
    t = (after_per_s - before.per_s) / math.sqrt(variance)
    return student_below(t, before.blocks - 1)


def slope_interval(slope: Slope, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a slope's mean, by the differences among its blocks."""
    low, high = 0.0, 1e4
    for _ in range(100):
        middle = (low + high) / 2
        inside = 1 - 2 * student_below(-middle, slope.blocks - 1)
        low, high = (middle, high) if inside < level else (low, middle)
    width = high * slope.sd_per_s / math.sqrt(slope.blocks)
    return slope.per_s - width, slope.per_s + width


def time_needed(from_s: float, probability: Callable[[float], float], p: float) -> float | None:
    """Return the time at which a falling probability reaches `p`; None if it hardly ever does."""
    low, high = from_s, max(from_s, 1.0)
    while probability(high) > p:
        low, high = high, 2 * high
        if high > _NEVER_S:
            return None
    while high - low > 0.005 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if probability(middle) <= p else (middle, high)
    return high
