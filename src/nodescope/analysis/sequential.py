"""Experiments: how many events they need, and evidence that one may look at at any time.

The e-process is a bet against "no effect" on each event's arm: the beta-binomial mixture over
all effects that lower the rate. Under "no effect" it exceeds 20 at any time with probability
at most 1/20 (Ville's inequality), however often one looks. A fixed test that is looked at
after each event is false 29 % of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nodescope.analysis.exact_tests import beta_below, binomial_below
from nodescope.arrays import F64

STOP_AT = 20.0  # 1 / 0.05
_PRIOR = (0.5, 4.0)  # of the treatment's share of events: small, but nothing is ruled out
_TINY = 1e-300
_MOST_EVENTS = 2_000


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
        if weight < 1e-8:
            continue
        most = _most_treated(events, share, p)
        if most >= 0:
            power += weight * binomial_below(most, events, chance)
    return power


@lru_cache(maxsize=20_000)
def _most_treated(events: int, share: float, p: float) -> int:
    """Return the most events in the treatment's arm that still reject; −1 if none does."""
    low, high = -1, events
    while high - low > 1:
        middle = (low + high) // 2
        rejects = binomial_below(middle, events, share) <= p
        low, high = (middle, high) if rejects else (low, middle)
    return low


def control_events_needed(
    ratio: float, share: float = 0.5, p: float = 0.05, power: float = 0.8
) -> float | None:
    """Return how many events control must have for a test of that power; None beyond 2,000."""
    guess = _rough_events(ratio, share, p, power)
    if guess > _MOST_EVENTS:
        return None
    low, high = 0.0, max(1.0, guess)
    while find_power(high, ratio, share, p) < power:
        low, high = high, high * 1.5
    while high - low > max(0.05, high * 0.01):
        middle = (low + high) / 2
        found = find_power(middle, ratio, share, p) >= power
        low, high = (low, middle) if found else (middle, high)
    return high


def _rough_events(ratio: float, share: float, p: float, power: float) -> float:
    """Return the same by the normal approximation of the log rate ratio."""
    from statistics import NormalDist

    if ratio >= 1:
        return math.inf
    normal = NormalDist()
    spread = (normal.inv_cdf(1 - p) + normal.inv_cdf(power)) ** 2
    least = max(ratio, 0.02)
    return spread * (1 + (1 - share) / (share * least)) / math.log(least) ** 2 / 1.5


# -- first events, drawn from an urn -------------------------------------------------

_EFFECTS = tuple(0.02 ** (step / 12) for step in range(13))  # rate ratios from 1 down to 1/50


@dataclass(frozen=True, slots=True)
class Draw:
    """The first event of one node: who was at risk in its stratum, and whose arm it had."""

    treated: int  # nodes at risk before it, without an event so far
    control: int
    hit: bool  # it was a treated one

    @property
    def informs(self) -> bool:
        """Return whether it could have been a node of either arm."""
        return self.treated > 0 and self.control > 0


def log_urn_e_value(draws: Iterable[Draw], against: float = 1.0) -> float:
    """Return the log e-value of first events against a rate ratio, for a lower one.

    Nodes were assigned at random. If the arm does nothing, the arms of the nodes that fail
    are drawn from an urn without replacement, whatever makes some nodes fail more often than
    others: the bet is fair under any frailty. `against` a ratio below 1 bets on none (futility).
    """
    drawn = [(each.treated, each.control, each.hit) for each in draws if each.informs]
    if not drawn:
        return 0.0
    treated, control, hit = np.array(drawn, np.float64).T
    bets = np.array(_EFFECTS if against >= 1 else (1.0,))[:, None]
    fair = _log_chances(treated, control, hit, np.array([[against]]))
    logs = (_log_chances(treated, control, hit, bets) - fair).sum(axis=1)
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


def _log_chances(treated: F64, control: F64, hit: F64, ratios: F64) -> F64:
    share = ratios * treated / (ratios * treated + control)
    result: F64 = np.log(np.where(hit > 0, share, 1 - share))
    return result
