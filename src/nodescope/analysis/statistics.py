"""The few distributions that comparing needs, on whole arrays.

Everything is one function, the regularised incomplete beta function, evaluated
by its continued fraction (Lentz's method; Numerical Recipes, 6.4): the tails of
the negative binomial and of the binomial are that function. SciPy has it too,
but costs every command 60 ms of import and every node 100 MB of disk.
"""

from __future__ import annotations

import numpy as np

from nodescope.arrays import F64

_TINY = 1e-300
_EPSILON = 1e-13
_ROUNDS = 100_000  # convergence takes about the square root of the larger parameter

# Stirling's series for log Γ, good to 1e-13 from 8 on.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_gamma(values: F64) -> F64:
    """The logarithm of Γ, of numbers above zero."""
    shift = np.zeros_like(values)
    large = values.astype(np.float64, copy=True)
    while (small := large < 8).any():
        shift[small] += np.log(large[small])
        large[small] += 1
    inverse = 1 / large
    square = inverse * inverse
    series = np.zeros_like(large)
    for coefficient in reversed(_STIRLING):
        series = series * square + coefficient
    half_log_2pi = 0.9189385332046727
    result: F64 = (large - 0.5) * np.log(large) - large + half_log_2pi + series * inverse - shift
    return result


def incomplete_beta(a: F64, b: F64, x: F64) -> F64:
    """I_x(a, b) for a, b > 0 and 0 ≤ x ≤ 1, element by element."""
    a, b, x = (np.array(each, np.float64) for each in np.broadcast_arrays(a, b, x))
    result = np.where(x >= 1, 1.0, 0.0)
    inside = (x > 0) & (x < 1)
    a, b, x = a[inside], b[inside], x[inside]
    # The fraction converges on one side of the mean; the other is its mirror.
    mirrored = x > (a + 1) / (a + b + 2)
    a, b, x = np.where(mirrored, b, a), np.where(mirrored, a, b), np.where(mirrored, 1 - x, x)
    front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * np.log(x) + b * np.log1p(-x)
    with np.errstate(under="ignore"):
        tail = np.exp(front) * _fraction(a, b, x) / a
    result[inside] = np.clip(np.where(mirrored, 1 - tail, tail), 0, 1)
    return result


def _fraction(a: F64, b: F64, x: F64) -> F64:
    """The continued fraction of I_x(a, b); what has converged takes no further part."""
    result = np.empty_like(x)
    going = np.arange(len(x))
    c = np.ones_like(x)
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d.copy()
    for m in range(1, _ROUNDS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + even * d)
        c = _away_from_zero(1 + even / c)
        value = value * d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _away_from_zero(1 + odd * d)
        c = _away_from_zero(1 + odd / c)
        value = value * d * c
        done = np.abs(d * c - 1) < _EPSILON
        if done.any():
            result[going[done]] = value[done]
            left = ~done
            going, value, c, d = going[left], value[left], c[left], d[left]
            a, b, x = a[left], b[left], x[left]
            if not len(going):
                break
    result[going] = value
    return result


def _away_from_zero(values: F64) -> F64:
    return np.where(np.abs(values) < _TINY, _TINY, values)


def negative_binomial_tails(count: F64, mean: F64, overdispersion: F64) -> tuple[F64, F64]:
    """P(X ≤ count) and P(X ≥ count) where Var X = mean + overdispersion · mean²."""
    size = 1 / overdispersion
    hit = overdispersion * mean / (1 + overdispersion * mean)
    below = 1 - incomplete_beta(count + 1, size, hit)
    above = np.where(count <= 0, 1.0, incomplete_beta(np.maximum(count, 1), size, hit))
    return below, above


def binomial_tails(count: F64, trials: F64, probability: F64) -> tuple[F64, F64]:
    """P(X ≤ count) and P(X ≥ count) of a binomial."""
    more = np.maximum(trials - count, 0)
    all_of_them = more <= 0
    below = np.where(
        all_of_them,
        1.0,
        1 - incomplete_beta(count + 1, np.where(all_of_them, 1, more), probability),
    )
    above = np.where(count <= 0, 1.0, incomplete_beta(np.maximum(count, 1), more + 1, probability))
    return below, above


def adjust(p: F64, tests: int) -> F64:
    """Benjamini–Hochberg q-values when `tests` were made in all.

    Those whose p is not given count as p = 1, which only makes the others' q larger.
    """
    order = np.argsort(p, kind="stable")
    q = p[order] * tests / np.arange(1, len(p) + 1)
    q = np.minimum.accumulate(q[::-1])[::-1]
    result = np.empty_like(q)
    result[order] = np.minimum(q, 1)
    return result


def overdispersion(counts: F64) -> F64:
    """α in Var = μ + α μ², by row, from at least two columns; never below zero."""
    mean = counts.mean(axis=1)
    variance = counts.var(axis=1, ddof=1)
    result: F64 = np.maximum((variance - mean) / np.maximum(mean, 1e-9) ** 2, 0)
    return result


def predictive_overdispersion(alpha: F64, mean: F64, windows: int, prior: float) -> F64:
    """α shrunk to what is usual here, and inflated because the mean is an estimate too."""
    shrunk = np.maximum((10 * prior + (windows - 1) * alpha) / (windows + 9), 1e-4)
    result: F64 = shrunk + (shrunk + 1 / np.maximum(mean, 0.5)) / windows
    return result
