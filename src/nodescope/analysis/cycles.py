"""Decide whether what precedes recurring events is more than the metric's own cycle.

Cron jobs, scrapes and housekeeping repeat by the clock. Events that fall on their phase,
by chance or because the same clock drives them, find all of their metrics high, and few
shifts by any second do. So a metric that stands out is looked at on the same phase where
there was no event: if it does a part of the same there, it has a cycle. Then its usual
course over the period is taken away, and what is left must stand out against the events
put each into another period, chosen at random, on its own phase. That also holds what is
noisier on that phase than on others.

In simulations of twelve hours with three to six events locked to an hourly job and no
cause, 4 to 6 % of metrics stand out in the end (p ≤ 0.05), whatever the job's size; up to
all of them do against shifts by every second alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nodescope.analysis.epochs import LAGS, SPAN, Epoch, Ranked, whole_events
from nodescope.arrays import F64, I64, Bool

PERIODS_S = (60, 300, 600, 900, 1800, 3600)
FEWEST_PERIODS = 4  # without an event
SAME = 0.1  # of the average: from here on the phase has a part in it
AS_GOOD = 0.7  # of what the best period explains: the shortest of these is what repeats
LOOKED_AT = 48  # periods: more make nothing clearer
MOSTLY = 0.5  # of the events' phases: a period that has fewer of them is not looked at
DRAWS = (200, 1800)  # the second only for what may stand out
UNCLEAR = 0.1
EXACT = 1e-9  # of the largest value: ranks would make something of what rounding leaves
MISLEADING_S = 4 * SPAN  # shorter cycles show in so many shifted windows that none stands out


@dataclass(frozen=True, slots=True)
class Cycle:
    """A metric's course by the clock, and around the events beyond that."""

    period_s: int
    beyond: Epoch  # its p is of events on the same phase


class _Phase:
    """The seconds on the same phase as the events, by event and period."""

    def __init__(self, metric: Ranked, events: I64, period_s: int) -> None:
        self.period_s = period_s
        # Counted from half a period off the first event: those around one phase are then
        # in a period each.
        start = int(events[0]) - period_s // 2
        phase = np.sort((events - start) % period_s)
        first, last = -(start // period_s) - 1, (len(metric) - start) // period_s
        periods = np.unique(np.linspace(first, last, LOOKED_AT).astype(np.int64))
        at = start + phase[:, np.newaxis] + periods * period_s
        whole = metric.whole(at)
        seen = whole.mean(axis=0) >= MOSTLY
        self.at, self.whole = at[:, seen], whole[:, seen]
        after = np.searchsorted(events, self.at)
        near = np.minimum(
            np.abs(self.at - events[np.maximum(after - 1, 0)]),
            np.abs(self.at - events[np.minimum(after, len(events) - 1)]),
        )
        self.free: Bool = self.whole & (near >= SPAN)
        self.spread_s = int(phase[-1] - phase[0])

    @property
    def told(self) -> bool:
        """Return whether each event's phase was seen often enough without one."""
        return bool((self.free.sum(axis=1) >= FEWEST_PERIODS).all())


def find_cycle(metric: Ranked, events: I64, found: Epoch) -> Cycle | None:
    """The cycle that has a part in what was found around events, if there is one."""
    events = whole_events(metric, events)
    phases = [each for period in PERIODS_S if (each := _Phase(metric, events, period)).told]
    shares = [
        float(metric.ranks[each.at[each.free] + found.lag_s].mean()) / found.average
        for each in phases
    ]
    enough = max(SAME, AS_GOOD * max(shares, default=0.0))
    for phase, share in zip(phases, shares, strict=True):
        if share >= enough:
            left = Ranked(_beyond(metric.values, phase.period_s))
            beyond = left.average(events)
            p = _same_phase_p(left.ranks, phase, abs(beyond.average))
            return Cycle(phase.period_s, replace(beyond, p=p))
    return None


def find_untold(metric: Ranked, events: I64) -> int | None:
    """A period that the events keep, and that was seen too seldom without them to tell."""
    events = whole_events(metric, events)
    for period in PERIODS_S:
        if period >= MISLEADING_S and len(events):
            phase = _Phase(metric, events, period)
            several = events[-1] - events[0] >= period // 2
            if several and phase.spread_s < SPAN and not phase.told:
                return period
    return None


def _beyond(values: F64, period_s: int) -> F64:
    """Return the values without the median of each second of the period."""
    periods = -(-len(values) // period_s)
    table = np.full((periods, period_s), np.nan)
    table.flat[: len(values)] = values
    ordered = np.sort(table, axis=0)  # what is missing comes last
    seen = np.maximum((~np.isnan(table)).sum(axis=0), 1)
    at = np.arange(period_s)
    table -= (ordered[(seen - 1) // 2, at] + ordered[seen // 2, at]) / 2
    left: F64 = table.ravel()[: len(values)]
    left[np.abs(left) < EXACT * np.nanmax(np.abs(values))] = 0.0
    return left


def _same_phase_p(ranks: F64, phase: _Phase, largest: float) -> float:
    """How often events in periods chosen at random have as large an average."""
    at = np.where(phase.whole, phase.at, -LAGS[0])
    epochs = ranks[at[..., np.newaxis] + np.arange(*LAGS)] * phase.whole[..., np.newaxis]
    random = np.random.default_rng(0)
    as_large = drawn = 0
    for draws in DRAWS:
        averages = _draw(epochs, phase.whole, random, draws)
        as_large += int((averages >= largest * (1 - 1e-9)).sum())  # it may draw our own
        drawn += len(averages)
        if as_large > UNCLEAR * drawn:
            break
    return (1 + as_large) / (1 + drawn)


def _draw(epochs: F64, whole: Bool, random: np.random.Generator, draws: int) -> F64:
    """The largest averages, each event in some period; two in one only if there are too many."""
    events, periods = whole.shape
    rounds = -(-events // periods)
    order = random.random((draws, rounds, periods)).argsort(axis=2).reshape(draws, -1)
    total, count = np.zeros((draws, SPAN)), np.zeros(draws)
    for event in range(events):
        total += epochs[event][order[:, event]]
        count += whole[event][order[:, event]]
    some = count > 0
    largest: F64 = np.abs(total[some]).max(axis=1) / count[some]
    return largest
