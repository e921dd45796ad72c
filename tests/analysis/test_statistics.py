from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodescope.analysis.statistics import (
    adjust,
    binomial_tails,
    incomplete_beta,
    log_gamma,
    negative_binomial_tails,
    overdispersion,
)


def one(number: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([number], np.float64)


@given(st.floats(1e-3, 1e7))
def test_log_gamma_is_that_of_the_library(value: float) -> None:
    assert log_gamma(one(value))[0] == pytest.approx(math.lgamma(value), rel=1e-12, abs=1e-11)


@settings(deadline=None)  # exact fractions are slow
@given(st.integers(0, 60), st.integers(0, 60), st.fractions(Fraction(1, 400), Fraction(399, 400)))
def test_binomial_tails_are_the_exact_sums(count: int, more: int, chance: Fraction) -> None:
    trials = count + more
    terms = [
        Fraction(math.comb(trials, k)) * chance**k * (1 - chance) ** (trials - k)
        for k in range(trials + 1)
    ]
    below, above = binomial_tails(one(count), one(trials), one(float(chance)))
    assert below[0] == pytest.approx(float(sum(terms[: count + 1])), rel=1e-8, abs=1e-13)
    assert above[0] == pytest.approx(float(sum(terms[count:])), rel=1e-8, abs=1e-300)


@settings(deadline=None)
@given(st.integers(0, 200), st.floats(0.1, 60), st.floats(1e-3, 4))
def test_negative_binomial_tails_are_the_sums(count: int, mean: float, alpha: float) -> None:
    size, hit = 1 / alpha, alpha * mean / (1 + alpha * mean)
    log_terms = [
        math.lgamma(size + k)
        - math.lgamma(size)
        - math.lgamma(k + 1)
        + size * math.log1p(-hit)
        + k * math.log(hit)
        for k in range(count + 1)
    ]
    below, above = negative_binomial_tails(one(count), one(mean), one(alpha))
    expected = sum(map(math.exp, log_terms))
    assert below[0] == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert above[0] == pytest.approx(1 - expected + math.exp(log_terms[-1]), rel=1e-7, abs=1e-9)


def test_a_far_tail_is_small_and_not_nothing() -> None:
    _, above = negative_binomial_tails(one(3000), one(326), one(0.05))
    assert 1e-60 < above[0] < 1e-20
    assert incomplete_beta(one(5), one(2), one(0))[0] == 0
    assert incomplete_beta(one(5), one(2), one(1))[0] == 1


def test_adjusting_is_benjamini_and_hochberg() -> None:
    p = np.array([0.04, 0.001, 0.03, 0.5])
    assert adjust(p, 4) == pytest.approx([0.16 / 3, 0.004, 0.16 / 3, 0.5])
    assert adjust(p, 40) == pytest.approx([1.6 / 3, 0.04, 1.6 / 3, 1.0])


def test_overdispersion_is_what_poisson_counts_do_not_have() -> None:
    rng = np.random.default_rng(1)
    plain = rng.poisson(50, (20, 2000)).astype(float)
    bursty = rng.poisson(rng.gamma(2, 25, (20, 2000))).astype(float)
    assert overdispersion(plain).max() < 0.01
    assert overdispersion(bursty) == pytest.approx(0.5, rel=0.2)
