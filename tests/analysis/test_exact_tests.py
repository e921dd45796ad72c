from __future__ import annotations

import math

import pytest

from nodescope.analysis.exact_tests import (
    binomial_above,
    binomial_below,
    clopper_pearson,
    count_above,
    count_below,
    poisson_below,
    poisson_interval,
    rate_fell,
    rate_ratio_interval,
    rate_rose,
    student_below,
)

HOUR_S = 3600.0


# The figures are SciPy 1.17's, to all digits that are given.
@pytest.mark.parametrize(
    ("count", "mean", "expected"),
    [(0, 28.571428, 3.9046892744518965e-13), (3, 2.5, 0.7575761331330662),
     (40, 60, 0.003982809502272968), (1000, 1100, 0.001175230568136558)],
)  # fmt: skip
def test_poisson(count: int, mean: float, expected: float) -> None:
    assert poisson_below(count, mean) == pytest.approx(expected, rel=1e-9)
    assert count_below(count, mean) == poisson_below(count, mean)
    assert count_above(count + 1, mean) == pytest.approx(1 - expected, rel=1e-4)


@pytest.mark.parametrize(
    ("count", "mean", "alpha", "expected"),
    [(0, 28, 0.05, 2.4875691704357892e-08), (5, 20, 0.3, 0.06403690177990859),
     (100, 300, 0.1, 0.003046223220647334)],
)  # fmt: skip
def test_negative_binomial(count: int, mean: float, alpha: float, expected: float) -> None:
    assert count_below(count, mean, alpha) == pytest.approx(expected, rel=1e-9)
    assert count_above(count + 1, mean, alpha) == pytest.approx(1 - expected, rel=1e-9)


@pytest.mark.parametrize(
    ("count", "trials", "probability", "expected"),
    [(0, 40, 0.5, 9.094947017729282e-13), (3, 20, 0.4, 0.01596116279000825),
     (900, 2000, 0.5, 4.228544767751905e-06)],
)  # fmt: skip
def test_binomial(count: int, trials: int, probability: float, expected: float) -> None:
    assert binomial_below(count, trials, probability) == pytest.approx(expected, rel=1e-9)
    above = binomial_above(count + 1, trials, probability)
    assert above == pytest.approx(1 - expected, rel=1e-9)


@pytest.mark.parametrize(
    ("t", "freedom", "expected"),
    [(-2, 5, 0.050969739414929174), (-6.5, 7, 0.00016706668128047412),
     (1.3, 3, 0.8577662456360515)],
)  # fmt: skip
def test_student(t: float, freedom: float, expected: float) -> None:
    assert student_below(t, freedom) == pytest.approx(expected, rel=1e-9)


def test_intervals() -> None:
    assert clopper_pearson(0, 10) == pytest.approx((0, 0.30849710781876294))
    assert clopper_pearson(3, 20) == pytest.approx((0.03207093718554477, 0.37892682654529564))
    assert clopper_pearson(17, 17) == pytest.approx((0.8049356770312616, 1))
    assert poisson_interval(0) == pytest.approx((0, 3.6888794541139354))
    assert poisson_interval(50) == pytest.approx((37.110963737461866, 65.91876666433681))


def test_rates_are_compared_by_their_exposure() -> None:
    assert rate_fell(5, HOUR_S, 0, HOUR_S) == pytest.approx(0.5**5)
    assert rate_rose(0, HOUR_S, 5, HOUR_S) == pytest.approx(0.5**5)
    assert rate_fell(0, HOUR_S, 0, 100 * HOUR_S) == 1  # nothing before: silence is no news
    low, high = rate_ratio_interval(10, HOUR_S, 10, HOUR_S)
    assert low * high == pytest.approx(1)
    assert low < 1 < high
    assert rate_ratio_interval(0, HOUR_S, 0, HOUR_S) == (0, math.inf)
