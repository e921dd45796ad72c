"""Experiments: how many events they need, and evidence that one may look at at any time.

The e-process is a bet against "no effect" on each event's arm: the beta-binomial mixture over
all effects that lower the rate. Under "no effect" it exceeds 20 at any time with probability
at most 1/20 (Ville's inequality), however often one looks. A fixed test that is looked at
after each event is false 29 % of the time.
"""

from __future__ import annotations

import math

import numpy as np

from nodescope.analysis.exact_tests import beta_below
from nodescope.analysis.statistics import log_gamma
from nodescope.arrays import F64

STOP_AT = 20.0  # 1 / 0.05
_PRIOR = (0.5, 4.0)  # of the treatment's share of events: small, but nothing is ruled out
_TINY = 1e-300


def log_e_value(treated: int, events: int, share: float) -> float:
    """Return the logarithm of the e-value against "no effect", for a lower rate.

    `events` are all, `treated` those of the treatment's arm, `share` its part of the exposure.
    """
    if not 0 < share < 1:
        return 0.0
    a, b = _PRIOR
    return (
        _log_beta(a + treated, b + events - treated)
        - _log_beta(a, b)
        + math.log(max(beta_below(a + treated, b + events - treated, share), _TINY))
        - math.log(beta_below(a, b, share))
        - treated * math.log(share)
        - (events - treated) * math.log1p(-share)
    )


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def find_power(control: float, ratio: float, share: float = 0.5, p: float = 0.05) -> float:
    """Return how often the exact test finds a rate ratio, by the events expected in control."""
    odds = share / (1 - share)
    mean = control * (1 + ratio * odds)
    chance = ratio * odds / (1 + ratio * odds)
    power = 0.0
    first = max(1, int(mean - 10 * math.sqrt(mean)))
    last = int(mean + 10 * math.sqrt(mean) + 30)
    for events in range(first, last):
        weight = math.exp(events * math.log(mean) - mean - math.lgamma(events + 1))
        if weight < 1e-10:
            continue
        most = int((_binomial_sums(events, share) <= p).sum()) - 1
        if most >= 0:
            power += weight * float(_binomial_sums(events, chance)[most])
    return power


def _binomial_sums(trials: int, probability: float) -> F64:
    """Return P(X ≤ k) for every k."""
    if probability <= 0:
        return np.ones(trials + 1)
    counts = np.arange(trials + 1, dtype=np.float64)
    logs = log_gamma(np.array([trials + 1.0])) - log_gamma(counts + 1)
    logs -= log_gamma(trials - counts + 1)
    logs += counts * math.log(probability) + (trials - counts) * math.log1p(-probability)
    result: F64 = np.cumsum(np.exp(logs))
    return result


def control_events_needed(
    ratio: float, share: float = 0.5, p: float = 0.05, power: float = 0.8
) -> float | None:
    """Return how many events control must have for a test of that power; None beyond 2,000."""
    low, high = 0.0, 1.0
    while find_power(high, ratio, share, p) < power:
        low, high = high, high * 2
        if high > 2_000:
            return None
    while high - low > max(0.05, high * 0.005):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if find_power(middle, ratio, share, p) >= power
            else (
                middle,
                high,
            )
        )
    return high
