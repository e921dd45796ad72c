"""Nodes for the simulations of `proof`: loops, leaks, outcomes and fleets, drawn at random.

No generator knows the tests: periods, jitter, tails, back-off, regimes, holes in the recording
and the times of watching are all drawn anew for each node, over ranges wider than those seen on
real nodes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nodescope.remedy.plan import Baseline
from nodescope.remedy.proof.aftermath import Aftermath
from nodescope.remedy.proof.baselines import (
    make_count_baseline,
    make_level_baseline,
    make_outcome_baseline,
)
from nodescope.remedy.proof.measure_series import NODE

Gaps = Iterator[float]


@dataclass(frozen=True, slots=True)
class Trial:
    """One node: its baseline, and the time after."""

    family: str
    before: Baseline
    after: Aftermath
    at_rest: bool = False  # what the plan stopped is at rest, whether or not it was the cause


def log_uniform(chance: random.Random, low: float, high: float) -> float:
    return math.exp(chance.uniform(math.log(low), math.log(high)))


# -- loops: gaps from one start to the next ---------------------------------------------


def regular(chance: random.Random) -> Gaps:
    period, jitter = log_uniform(chance, 0.5, 180), chance.uniform(0, 0.4)
    while True:
        yield max(0.05, period * (1 + jitter * chance.gauss(0, 1)))


def exponential(chance: random.Random) -> Gaps:
    period, wait = log_uniform(chance, 1, 180), chance.uniform(0, 10)
    while True:
        yield wait + chance.expovariate(1 / period)


def heavy_tailed(chance: random.Random) -> Gaps:
    period, sigma = log_uniform(chance, 1, 120), chance.uniform(0.5, 1.5)
    while True:
        yield period * math.exp(sigma * chance.gauss(0, 1))


def pareto(chance: random.Random) -> Gaps:
    period, shape = log_uniform(chance, 1, 60), chance.uniform(1.5, 3.5)
    while True:
        yield period * chance.paretovariate(shape)


def regimes(chance: random.Random) -> Gaps:
    period, factor = log_uniform(chance, 1, 30), log_uniform(chance, 3, 20)
    dwell, slow, left = log_uniform(chance, 120, 1800), False, 0.0
    while True:
        if left <= 0:
            slow, left = not slow, chance.expovariate(1 / dwell)
        gap = chance.expovariate(1 / (period * (factor if slow else 1)))
        left -= gap
        yield gap


def backing_off(first: float, longest: float) -> Callable[[random.Random], Gaps]:
    def gaps(chance: random.Random) -> Gaps:
        ran, wait = log_uniform(chance, 0.2, 60), first * 2 ** chance.randrange(12)
        while True:
            wait = min(wait, longest)
            yield max(0.05, ran * chance.uniform(0.7, 1.4)) + wait
            wait *= 2

    return gaps


def tides(chance: random.Random) -> Gaps:
    period, depth = log_uniform(chance, 1, 60), chance.uniform(0.3, 0.9)
    cycle, at = log_uniform(chance, 1800, 86_400), chance.uniform(0, 86_400)
    while True:
        rate = (1 + depth * math.sin(2 * math.pi * at / cycle)) / period
        gap = chance.expovariate(rate)
        at += gap
        yield gap


# What restarts each, and the longest wait that its policy is known to have.
LOOPS: dict[str, tuple[Callable[[random.Random], Gaps], str, float]] = {
    "regular": (regular, "unit_restarts", 60),
    "exponential": (exponential, "unit_restarts", 60),
    "lognormal rests": (heavy_tailed, "unit_restarts", 60),
    "Pareto rests": (pareto, "unit_restarts", 60),
    "two regimes": (regimes, "container_restarts", 60),
    "tides": (tides, "unit_restarts", 60),
    "docker back-off": (backing_off(0.1, 60), "container_restarts", 60),
    "kubelet back-off": (backing_off(10, 300), "container_restarts", 300),
    "supervisor's back-off": (backing_off(1, 960), "cgroups_made", 300),
}


SEEN_TO_WAIT = ("docker back-off", "kubelet back-off")


def make_loop(chance: random.Random, family: str, after_s: float, *, fixed: bool) -> Trial | None:
    """Return a node with a loop; None if it made too few rounds to be noticed.

    Docker and the kubelet are seen to wait. Of the others half are of plans that stopped
    something else, which is at rest while the loop goes on.
    """
    draw, measure, cap_s = LOOPS[family]
    watched_s = log_uniform(chance, 300, 7200)
    times = [0.0]
    gaps = draw(chance)
    while times[-1] < watched_s + after_s and len(times) < 60_000:
        times.append(times[-1] + next(gaps))
    holes = [_hole(chance, watched_s, after_s) for _ in range(chance.choice((0, 0, 0, 1, 2)))]
    seen = [each for each in times if not any(low <= each < high for low, high in holes)]
    before = [each for each in seen if each < watched_s]
    later = [] if fixed else [each for each in seen if watched_s + 2 <= each < watched_s + after_s]
    if len(before) < 3:
        return None
    start = before[0]
    baseline = make_count_baseline(
        measure, "it", [each - start for each in before], watched_s - start, len(before) - 1,
        watched_s - start - _lost(holes, start, watched_s), cap_s,
    )  # fmt: skip
    observed_s = after_s - 2 - _lost(holes, watched_s + 2, watched_s + after_s)
    unbroken_s = _unbroken(holes, watched_s + 2, watched_s + after_s)
    after = Aftermath(measure, "it", float(len(later)), observed_s, unbroken_s)
    at_rest = family not in SEEN_TO_WAIT and (fixed or chance.random() < 0.5)
    return Trial(family, baseline, after, at_rest)


def _hole(chance: random.Random, before_s: float, after_s: float) -> tuple[float, float]:
    start = chance.uniform(0, before_s + after_s)
    return start, start + log_uniform(chance, 5, 300)


def _lost(holes: list[tuple[float, float]], low: float, high: float) -> float:
    return sum(max(0.0, min(high, end) - max(low, start)) for start, end in holes)


def _unbroken(holes: list[tuple[float, float]], low: float, high: float) -> float:
    edges = [low]
    longest = 0.0
    for start, end in sorted(holes):
        if start < high and end > low:
            longest = max(longest, start - edges[-1])
            edges.append(max(edges[-1], end))
    return max(longest, high - edges[-1], 0.0)


# -- leaks: levels that grow --------------------------------------------------------------


def steady_leak(chance: random.Random, count: int) -> list[float]:
    rate, noise, memory = log_uniform(chance, 0.05, 20), log_uniform(chance, 0.1, 30), 0.0
    keep, level = chance.uniform(0, 0.98), chance.uniform(0, 5000)
    values = []
    for _ in range(count):
        memory = keep * memory + chance.gauss(0, noise)
        level += _poisson(chance, rate)
        values.append(max(0.0, level + memory))
    return values


def wandering_leak(chance: random.Random, count: int) -> list[float]:
    rate, sway, keep = log_uniform(chance, 0.1, 20), 0.0, chance.uniform(0.9, 0.999)
    spread, level, values = chance.uniform(0.2, 1.0), chance.uniform(0, 5000), []
    for _ in range(count):
        sway = keep * sway + math.sqrt(1 - keep**2) * chance.gauss(0, spread)
        level += _poisson(chance, rate * math.exp(sway))
        values.append(level)
    return values


def bursts(chance: random.Random, count: int) -> list[float]:
    each, pause = log_uniform(chance, 5, 200), log_uniform(chance, 3, 60)
    level, values = chance.uniform(0, 5000), []
    for _ in range(count):
        if chance.random() < 1 / pause:
            level += each * chance.uniform(0.5, 1.5)
        values.append(level)
    return values


def saw_tooth(chance: random.Random, count: int) -> list[float]:
    rate, height = log_uniform(chance, 0.3, 20), log_uniform(chance, 60, 5000)
    keep, level, values = chance.uniform(0, 0.6), 0.0, []
    top = height * chance.uniform(0.6, 1.4)
    level = chance.uniform(0, top)
    for _ in range(count):
        level += _poisson(chance, rate)
        if level > top:
            level, top = level * keep, height * chance.uniform(0.6, 1.4)
        values.append(level)
    return values


LEAKS = {
    "leak, autocorrelated": steady_leak,
    "leak, wandering rate": wandering_leak,
    "leak in bursts": bursts,
    "saw-tooth of a cache": saw_tooth,
}
LOOK_S = 10.0


def make_leak(chance: random.Random, family: str, after_s: float, *, fixed: bool) -> Trial | None:
    """Return a node whose zombies grow, of which nothing else is counted."""
    watched = int(log_uniform(chance, 300, 7200) / LOOK_S)
    later = int(after_s / LOOK_S)
    values = LEAKS[family](chance, watched + later)
    if fixed:
        values[watched:] = [values[watched - 1] + chance.choice((-1, 0, 0, 1))] * later
    readings = [(int(at * LOOK_S * 1e9), value) for at, value in enumerate(values)]
    if watched < 10 or values[watched - 1] <= values[0]:
        return None  # it did not look like a leak
    before = make_level_baseline(readings[:watched])
    seen = tuple((at * LOOK_S, value) for at, value in enumerate(values[watched:]))
    return Trial(family, before, Aftermath("zombies", NODE, 0.0, after_s, after_s, seen))


# -- outcomes: rare, and often many at once ------------------------------------------------


def make_outcome(
    chance: random.Random, *, clustered: bool, chosen: bool, ratio: float
) -> tuple[Baseline, Aftermath]:
    """Return incidents before and after; `chosen`: the plan was made because one happened."""
    rate = log_uniform(chance, 0.003, 1.0)  # an hour, of all nodes that are compared
    before_h, after_h = log_uniform(chance, 24, 1500), log_uniform(chance, 24, 3000)
    uneven = chance.uniform(0.2, 0.7) if clustered else 0.0
    spell_h = log_uniform(chance, 24, 336)
    times = _incidents(chance, rate, before_h, uneven, spell_h)
    if chosen:
        times.append(before_h)
    later = _incidents(chance, rate * ratio, after_h, uneven, spell_h)
    hours = [each * 3600 for each in times]
    return (
        make_outcome_baseline("resets", hours, before_h * 3600, before_h * 3600),
        Aftermath("resets", NODE, float(len(later)), after_h * 3600, after_h * 3600),
    )


def _incidents(
    chance: random.Random, rate: float, hours: float, uneven: float, spell_h: float
) -> list[float]:
    """Return the times of incidents, where the rate differs from spell to spell (its CV)."""
    times, at = [], 0.0
    while at < hours:
        length = min(spell_h, hours - at)
        own = rate * (chance.gammavariate(uneven**-2, uneven**2) if uneven else 1)
        times += [at + chance.uniform(0, length) for _ in range(_poisson(chance, own * length))]
        at += length
    return sorted(times)


def _poisson(chance: random.Random, mean: float) -> int:
    if mean > 50:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    count, product, limit = 0, chance.random(), math.exp(-mean)
    while product > limit:
        count += 1
        product *= chance.random()
    return count
