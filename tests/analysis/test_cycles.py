"""Metrics that repeat by the clock, and events that fall on their phase."""

from __future__ import annotations

import numpy as np

from nodescope.analysis.cycles import Cycle, find_cycle, find_untold
from nodescope.analysis.epochs import Epoch, Ranked, average_epochs
from nodescope.arrays import F64, I64

HOUR = 3600
LENGTH = 12 * HOUR
SURELY = 0.05


def noise(random: np.random.Generator, length: int = LENGTH) -> F64:
    """What a second leaves to the next, of standard deviation 1."""
    memory = 0.9 ** np.arange(80)
    values: F64 = np.convolve(random.normal(size=length + 79), memory, "valid")
    values *= np.sqrt(1 - 0.81)
    return values


def job(random: np.random.Generator, period: int, length: int = LENGTH) -> F64:
    """40 s on each full period, never twice as much."""
    period_number, phase = np.divmod(np.arange(length) + 20, period)
    size: F64 = 3 * random.lognormal(0, 0.5, period_number[-1] + 1)
    return np.where(phase < 40, size[period_number], 0.0)


def locked(random: np.random.Generator, period: int, count: int, length: int = LENGTH) -> I64:
    """Events shortly before or after a full period, never at the ends."""
    periods = np.arange(-(-200 // period), (length - 200) // period)
    chosen = random.choice(periods, count, replace=False) * period
    events: I64 = np.sort(chosen + random.integers(-10, 31, count))
    return events


def judge(values: F64, events: I64) -> tuple[Epoch, Cycle | None, float]:
    """As a diagnosis does: a cycle is asked about if the metric stands out."""
    metric = Ranked(values)
    plain = average_epochs(metric, events)
    assert plain is not None
    cycle = find_cycle(metric, events, plain) if plain.p <= SURELY else None
    return plain, cycle, max(plain.p, cycle.beyond.p if cycle else 0.0)


def test_an_hourly_job_is_no_sign_of_events_on_the_hour() -> None:
    random = np.random.default_rng(1)
    found = [
        judge(noise(random) + job(random, HOUR), locked(random, HOUR, int(random.integers(3, 7))))
        for _ in range(60)
    ]
    assert sum(plain.p <= SURELY for plain, _, _ in found) >= 50  # it is the cycle that stands out
    assert sum(p <= SURELY for _, _, p in found) <= 4
    assert all(cycle is None or cycle.period_s == HOUR for _, cycle, _ in found)


def test_nor_is_a_slow_hourly_swing() -> None:
    random = np.random.default_rng(2)
    swing = 2 * np.cos(2 * np.pi * np.arange(LENGTH) / HOUR)
    found = [judge(noise(random) + swing, locked(random, HOUR, 4)) for _ in range(40)]
    assert sum(plain.p <= SURELY for plain, _, _ in found) >= 4
    assert sum(p <= SURELY for _, _, p in found) <= 2


def test_nor_is_what_repeats_each_minute_or_quarter_hour() -> None:
    random = np.random.default_rng(3)
    for period, length in ((60, 7200), (900, 4 * HOUR)):
        found = [
            judge(noise(random, length) + job(random, period, length),
                  locked(random, period, 4, length))
            for _ in range(60)
        ]  # fmt: skip
        assert sum(p <= SURELY for _, _, p in found) <= 4


def test_a_cause_stands_out_beyond_the_cycle_with_its_lag() -> None:
    random = np.random.default_rng(4)
    hits = 0
    for count in (3, 4, 6) * 6:
        values, events = noise(random) + job(random, HOUR), locked(random, HOUR, count)
        for event in events:
            values[event - 12 : event - 4] += 8
        _, cycle, p = judge(values, events)
        assert cycle is not None
        assert cycle.period_s == HOUR
        hits += p <= SURELY and -13 <= cycle.beyond.lag_s <= -4
    assert hits >= 17


def test_a_cause_on_a_minutes_cycle_stands_out() -> None:
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(20):
        values, events = noise(random, 7200) + job(random, 60, 7200), locked(random, 60, 4, 7200)
        for event in events:
            values[event - 42 : event - 34] += 20
        hits += judge(values, events)[2] <= SURELY
    assert hits >= 19


def test_what_comes_with_the_events_alone_is_no_cycle() -> None:
    # In half of the hours, but never without an event.
    random = np.random.default_rng(6)
    values, events = noise(random), locked(random, HOUR, 6)
    for event in events:
        values[event - 12 : event - 4] += 8
    plain, cycle, p = judge(values, events)
    assert cycle is None
    assert p == plain.p < 1e-3


def test_a_slow_wave_beside_the_cycle_is_no_sign() -> None:
    # Events in hours on end, which are alike whatever happens in them.
    random = np.random.default_rng(7)
    ps = []
    for _ in range(40):
        wave = np.cumsum(random.normal(size=LENGTH // 60))
        wave *= 4 / wave.std()
        first = int(random.integers(1, 9))
        events = np.arange(first, first + 3) * HOUR + random.integers(-10, 31, 3)
        values = noise(random) + job(random, HOUR) + np.repeat(wave, 60)
        ps.append(judge(values, events)[2])
    assert sum(p <= SURELY for p in ps) <= 3


def test_a_cycle_without_noise_leaves_nothing() -> None:
    random = np.random.default_rng(8)
    values = np.where(np.arange(LENGTH) % HOUR < 30, 5.0, 0.0)
    values += 1e-12 * random.normal(size=LENGTH)  # as sums of rates do
    plain, cycle, _ = judge(values, locked(random, HOUR, 4))
    assert plain.p <= SURELY
    assert cycle is not None
    assert cycle.beyond.p == 1


def test_a_cycle_is_seen_across_gaps() -> None:
    random = np.random.default_rng(9)
    values = noise(random) + job(random, HOUR)
    values[2 * HOUR + 500 : 3 * HOUR - 500] = np.nan
    values[5 * HOUR - 300 : 5 * HOUR + 300] = np.nan
    values[::97] = np.nan
    _, cycle, p = judge(values, np.array([HOUR, 4 * HOUR + 5, 7 * HOUR + 20, 9 * HOUR]))
    assert cycle is not None
    assert cycle.period_s == HOUR
    assert p > SURELY


def test_more_events_than_periods_are_put_somewhere() -> None:
    random = np.random.default_rng(10)
    swing = 3 * np.cos(2 * np.pi * np.arange(LENGTH) / HOUR)
    events = np.sort(np.concatenate([locked(random, HOUR, 6) + 200 * k for k in range(-3, 4)]))
    assert len(events) > LENGTH // HOUR
    metric = Ranked(noise(random) + swing)
    plain = average_epochs(metric, events)
    assert plain is not None
    cycle = find_cycle(metric, events, plain)
    assert cycle is not None
    assert cycle.beyond.events == len(events)
    assert cycle.beyond.p > SURELY


def test_a_period_is_untold_if_it_was_not_seen_without_the_events() -> None:
    random = np.random.default_rng(11)
    metric = Ranked(noise(random, 5 * HOUR))
    each_hour = np.arange(1, 5) * HOUR + np.array([3, 20, 0, 9])
    assert find_untold(metric, each_hour) == HOUR
    assert find_untold(metric, each_hour + np.array([0, 700, 1500, 2200])) is None  # no phase
    assert find_untold(metric, each_hour[:1] + np.array([0, 40, 80])) is None  # one hour
    assert find_untold(Ranked(noise(random)), each_hour) is None  # eight hours without
    assert find_untold(metric, np.array([], np.int64)) is None
