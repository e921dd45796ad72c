from __future__ import annotations

import numpy as np
import pytest

from nodescope.analysis.core_strips import SHOWN, Strip, find_peaks, join_strips, make_strip
from nodescope.arrays import I64
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES


def ticks_of(shares: list[list[dict[str, int]]]) -> tuple[I64, I64, I64]:
    """Counters of cores that used this much of each state, reading after reading."""
    cpu, times, columns = [], [], []
    for number, readings in enumerate(shares):
        counters = np.zeros(len(STATES), np.int64)
        for second, used in enumerate([{}, *readings]):
            counters = counters + np.array([used.get(state, 0) for state in STATES], np.int64)
            cpu.append(number)
            times.append(second * SECOND_NS)
            columns.append(counters)
    return np.array(cpu), np.array(times), np.stack(columns, axis=1)


def row(strips: list[Strip], state: str, cpu: int, *, columns: int, length: int) -> list[int]:
    found = find_peaks(strips, state, 0, length // columns, columns)
    return found.shares[found.cpus.index(cpu)].tolist()  # type: ignore[no-any-return]


IDLE, HELD, HALF = {"idle": 100}, {"system": 100}, {"user": 50, "idle": 50}


def test_shares_of_each_reading() -> None:
    strip = make_strip(*ticks_of([[IDLE, HELD, HALF], [IDLE, IDLE, IDLE]]))
    length = 3 * SECOND_NS
    assert row([strip], "system", 0, columns=3, length=length) == [0, 254, 0]
    assert row([strip], "total", 0, columns=3, length=length) == [0, 254, 127]
    assert row([strip], "idle", 1, columns=3, length=length) == [254] * 3
    assert row([strip], "kernel", 0, columns=3, length=length) == [0, 254, 0]
    average = find_peaks([strip], "system", 0, SECOND_NS, 3).average
    assert average.tolist() == [0, 127, 0]


def test_a_peak_is_no_mean() -> None:
    strip = make_strip(*ticks_of([[IDLE] * 50 + [HELD] + [IDLE] * 49]))
    assert row([strip], "system", 0, columns=1, length=100 * SECOND_NS) == [254]
    assert find_peaks([strip], "system", 0, 100 * SECOND_NS, 1).average.tolist() == [3]


def test_columns_narrower_than_a_reading_take_it() -> None:
    strip = make_strip(*ticks_of([[IDLE, HELD]]))
    assert row([strip], "system", 0, columns=8, length=2 * SECOND_NS) == [0] * 4 + [254] * 4


def test_beyond_what_was_read_nothing_is_known() -> None:
    strip = make_strip(*ticks_of([[HELD]]))
    assert row([strip], "system", 0, columns=4, length=4 * SECOND_NS) == [254, 255, 255, 255]
    nothing = find_peaks([], "system", 0, SECOND_NS, 3)
    assert nothing.cpus == []
    assert nothing.average.tolist() == [255] * 3


def test_a_counter_that_fell_tells_nothing() -> None:
    cpu, times, ticks = ticks_of([[HELD, HELD, HELD]])
    ticks[:, 2:] -= 150
    strip = make_strip(cpu, times, ticks)
    assert row([strip], "system", 0, columns=3, length=3 * SECOND_NS)[1] == 255


def test_cores_that_come_and_go() -> None:
    cpu, times, ticks = ticks_of([[HELD] * 4, [HELD] * 4])
    kept = ~((cpu == 1) & (times == 2 * SECOND_NS))
    strip = make_strip(cpu[kept], times[kept], ticks[:, kept])
    assert row([strip], "system", 0, columns=4, length=4 * SECOND_NS) == [254] * 4
    assert row([strip], "system", 1, columns=4, length=4 * SECOND_NS) == [254, 255, 254, 254]


def test_the_time_between_two_segments() -> None:
    cpu, times, ticks = ticks_of([[HELD, HELD, IDLE]])
    first = make_strip(cpu[:2], times[:2], ticks[:, :2])
    second = make_strip(cpu[2:], times[2:], ticks[:, 2:])
    joint = join_strips(first, second)
    assert joint is not None
    strips = [first, joint, second]
    assert row(strips, "system", 0, columns=3, length=3 * SECOND_NS) == [254, 254, 0]
    assert join_strips(second, first) is None


def test_segments_with_different_cores() -> None:
    one = make_strip(*ticks_of([[HELD]]))
    cpu, times, ticks = ticks_of([[HELD], [HELD]])
    other = make_strip(cpu, times + SECOND_NS, ticks)
    found = find_peaks([one, other], "system", 0, SECOND_NS, 2)
    assert found.cpus == [0, 1]
    assert found.shares.tolist() == [[254, 254], [255, 254]]


def test_nothing_read() -> None:
    empty = np.empty(0, np.int64)
    strip = make_strip(empty, empty, np.empty((len(STATES), 0), np.int64))
    assert find_peaks([strip], "system", 0, SECOND_NS, 2).cpus == []


@pytest.mark.parametrize("state", SHOWN)
def test_every_state_is_shown(state: str) -> None:
    strip = make_strip(*ticks_of([[HALF, HELD]]))
    assert max(row([strip], state, 0, columns=2, length=2 * SECOND_NS)) <= 254
