"""Exact tests of counts, rates and slopes: the arithmetic of a proof, number by number.

Every tail is taken from the side on which it is small, so that 4e-13 is not lost in 1 − x.
The function behind them is the regularised incomplete beta function, as in `statistics`; that
one is for whole arrays and takes fifty times as long for a single number.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_NEARLY_POISSON = 1e-7  # overdispersion below which a negative binomial is a Poisson
_HALVINGS = 200
_ROUNDS = 100_000
_EPSILON, _TINY = 1e-14, 1e-300


def beta_below(a: float, b: float, x: float) -> float:
    """Return P(X ≤ x) of a beta distribution."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges on one side of the mean
        return 1 - beta_below(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    return min(1.0, math.exp(front) * _fraction(a, b, x) / a)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of I_x(a, b) (Lentz's method)."""
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _ROUNDS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _away_from_zero(1 + even * d)
        c = _away_from_zero(1 + even / c)
        value *= d * c
        d = 1 / _away_from_zero(1 + odd * d)
        c = _away_from_zero(1 + odd / c)
        value *= d * c
        if abs(d * c - 1) < _EPSILON:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) >= _TINY else _TINY


# -- counts ------------------------------------------------------------------------


def poisson_below(count: int, mean: float) -> float:
    """Return P(X ≤ count) of a Poisson distribution."""
    if count < 0:
        return 0.0
    if mean <= 0:
        return 1.0
    log_mean = math.log(mean)
    logs = [term * log_mean - mean - math.lgamma(term + 1) for term in range(count + 1)]
    top = max(logs)
    return min(1.0, math.exp(top + math.log(math.fsum(math.exp(each - top) for each in logs))))


def count_below(count: int, mean: float, overdispersion: float = 0.0) -> float:
    """Return P(X ≤ count) where Var X = mean + overdispersion · mean²."""
    if count < 0:
        return 0.0
    if mean <= 0:
        return 1.0
    if overdispersion < _NEARLY_POISSON:
        return poisson_below(count, mean)
    stays = 1 / (1 + overdispersion * mean)
    return beta_below(1 / overdispersion, count + 1, stays)


def count_above(count: int, mean: float, overdispersion: float = 0.0) -> float:
    """Return P(X ≥ count) where Var X = mean + overdispersion · mean²."""
    if count <= 0:
        return 1.0
    if mean <= 0:
        return 0.0
    spread = max(overdispersion, _NEARLY_POISSON)
    return beta_below(count, 1 / spread, spread * mean / (1 + spread * mean))


def binomial_below(count: int, trials: int, probability: float) -> float:
    """Return P(X ≤ count) of a binomial."""
    if count < 0:
        return 0.0
    if count >= trials:
        return 1.0
    return beta_below(trials - count, count + 1, 1 - probability)


def binomial_above(count: int, trials: int, probability: float) -> float:
    """Return P(X ≥ count) of a binomial."""
    if count <= 0:
        return 1.0
    if count > trials:
        return 0.0
    return beta_below(count, trials - count + 1, probability)


def student_below(t: float, freedom: float) -> float:
    """Return P(T ≤ t) of Student's distribution."""
    tail = beta_below(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t < 0 else 1 - tail


# -- intervals ---------------------------------------------------------------------


def clopper_pearson(count: int, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a binomial's probability."""
    rest = (1 - level) / 2
    low = 0.0 if count <= 0 else _solve(lambda p: binomial_above(count, trials, p) - rest)
    high = 1.0 if count >= trials else _solve(lambda p: rest - binomial_below(count, trials, p))
    return low, high


def poisson_interval(count: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a Poisson's mean (Garwood)."""
    rest = (1 - level) / 2
    top = count + 20 + 20 * math.sqrt(count + 1)
    high = top * _solve(lambda share: rest - poisson_below(count, top * share))
    if count <= 0:
        return 0.0, high
    return top * _solve(lambda share: 1 - poisson_below(count - 1, top * share) - rest), high


def _solve(rising: Callable[[float], float]) -> float:
    """Return where a function that rises from 0 to 1 passes zero."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


# -- two rates ---------------------------------------------------------------------


def rate_fell(before: int, before_s: float, after: int, after_s: float) -> float:
    """Return P(so few after | the rate is the same), exact given the number of events in all."""
    if before + after == 0:
        return 1.0
    return binomial_below(after, before + after, after_s / (before_s + after_s))


def rate_rose(before: int, before_s: float, after: int, after_s: float) -> float:
    """Return P(so many after | the rate is the same), exact given the number of events in all."""
    if before + after == 0:
        return 1.0
    return binomial_above(after, before + after, after_s / (before_s + after_s))


def rate_ratio_interval(
    before: int, before_s: float, after: int, after_s: float, level: float = 0.95
) -> tuple[float, float]:
    """Return the exact interval of rate after ÷ rate before; it may reach to infinity."""
    low, high = (0.0, 1.0)
    if before + after:
        low, high = clopper_pearson(after, before + after, level)
    scale = before_s / after_s
    return low / (1 - low) * scale if low < 1 else math.inf, (
        high / (1 - high) * scale if high < 1 else math.inf
    )
