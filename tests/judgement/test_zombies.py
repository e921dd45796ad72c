from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from nodescope.judgement.zombies import (
    Trend,
    ZombieVerdict,
    advise,
    find_nature,
    find_trend,
    is_walking,
    judge,
    time_to_critical_ns,
)
from nodescope.quantities import HOUR_NS, MINUTE_NS

GIB = 1 << 30


def _judge(dying: int | None, walk_ns: int = 30_000, memory: int = 512 * GIB) -> ZombieVerdict:
    tracked = None if dying is None else dying + 100
    return judge(dying, tracked, walk_ns, possible_cpus=4, memory_bytes=memory)


def test_thresholds_where_reclaim_pays() -> None:
    assert _judge(0).level == "healthy"
    assert _judge(1_999).level == "healthy"
    assert _judge(2_000).level == "warn"
    assert _judge(9_999).level == "warn"
    assert _judge(10_000).level == "critical"


def test_thresholds_where_a_read_walks_them_all() -> None:
    verdict = _judge(7_000, walk_ns=490_000_000)  # upstream before 5.8: 70 µs each
    assert (verdict.level, verdict.critical_at, verdict.walks) == ("critical", 7_000, True)
    assert _judge(6_900, walk_ns=483_000_000).level == "warn"
    slow = _judge(1_500, walk_ns=600_000_000)  # many CPUs: few are enough
    assert slow.level == "critical"
    assert slow.reasons == ("one read walks for 600 ms",)


def test_a_slow_read_of_few_is_a_busy_machine_and_no_walk() -> None:
    assert is_walking(4_900_000, 5) is False
    assert is_walking(20_000_000, 5_000) is False
    assert is_walking(100_000_000, 5_000) is True
    assert is_walking(None, 5_000) is False


def test_their_own_memory_counts() -> None:
    verdict = judge(1_000, 1_100, None, possible_cpus=96, memory_bytes=16 * GIB)
    assert verdict.level == "warn"
    assert verdict.overhead_bytes == 1_000 * (13_000 + 96 * 2_300)
    assert verdict.reasons == ("they take 1.4% of memory",)


def test_what_cannot_be_counted_is_unknown() -> None:
    assert _judge(None).level == "unknown"


def test_trend_is_the_median_slope() -> None:
    times = [minute * MINUTE_NS for minute in range(61)]
    values = [171 * minute // 60 for minute in range(61)]
    values[30] = 9_000  # one wild look changes nothing
    trend = find_trend(times, values)
    assert trend is not None
    assert abs(trend.per_hour - 171) < 3
    assert (trend.looks, trend.over_ns, trend.first, trend.last) == (61, HOUR_NS, 0, 171)


def test_one_look_is_no_trend() -> None:
    assert find_trend([5], [1]) is None
    assert find_trend([5, 5], [1, 2]) is None
    assert find_trend([], []) is None


@given(
    st.lists(st.integers(0, 100_000), min_size=2, max_size=300),
    st.integers(1, 1_000_000_000),
)
def test_a_trend_lies_between_the_steepest_steps(values: list[int], step: int) -> None:
    times = [at * step for at in range(len(values))]
    trend = find_trend(times, values)
    assert trend is not None
    steps = [(b - a) / step * HOUR_NS for a, b in itertools.pairwise(values)]
    slack = 1e-6 * max(map(abs, steps)) + 1e-6
    assert min(steps) - slack <= trend.per_hour <= max(steps) + slack
    assert (trend.first, trend.last) == (values[0], values[-1])


def test_time_to_critical() -> None:
    growing = Trend(360, HOUR_NS, 100.0, 0, 100)
    assert time_to_critical_ns(9_000, growing, 10_000) == 10 * HOUR_NS
    assert time_to_critical_ns(12_000, growing, 10_000) == 0
    assert time_to_critical_ns(9_000, Trend(2, HOUR_NS, 0.0, 5, 5), 10_000) is None
    assert time_to_critical_ns(9_000, None, 10_000) is None


def test_leak_or_cache() -> None:
    times = [minute * MINUTE_NS for minute in range(61)]
    rising = [10 * minute for minute in range(61)]
    assert find_nature(times, rising, removed=600, unreleased=590) == "leak"
    assert find_nature(times, rising, removed=600, unreleased=100) == "unknown"
    assert find_nature(times, rising, removed=0, unreleased=0) == "unknown"
    assert find_nature(times[:30], rising[:30], removed=600, unreleased=590) == "unknown"
    saw_tooth = [10 * (minute % 20) for minute in range(61)]
    assert find_nature(times, saw_tooth, removed=600, unreleased=590) == "cache"
    assert find_nature([0], [5], removed=0, unreleased=0) == "unknown"


def test_advice_follows_what_pins_them() -> None:
    advice = advise(
        [
            ("/pods", {"shmem": 20_480_000, "file": 4_096}, "/cg/pods"),
            ("/batch; rm -rf x", {"file": 1_000_000}, "/cg/batch; rm -rf x"),
        ],
        "memory.force_empty",
    )
    said = [(each.parent, each.helps, each.command) for each in advice]
    assert said[0] == (None, True, "nodescope zombies --watch 60s")  # stop the leak first
    assert ("/pods", True, "nodescope zombies --files") in said
    quoted = "echo 0 > '/cg/batch; rm -rf x/memory.force_empty'"
    assert ("/batch; rm -rf x", True, quoted) in said
    assert not any(parent == "/pods" and "echo" in str(command) for parent, _, command in said)
    assert any("tmpfs" in each.text and not each.helps for each in advice)


def test_advice_on_v2_reclaims_as_much_as_is_held_and_never_at_the_root() -> None:
    parents: list[tuple[str, dict[str, int], str]] = [
        ("/a", {"file": 81_920}, "/cg/a"),
        ("/", {"file": 81_920}, "/cg"),
    ]
    commands = [each.command for each in advise(parents, "memory.reclaim")]
    assert commands == [
        "nodescope zombies --watch 60s",
        "echo 81920 > /cg/a/memory.reclaim",
        "echo 1 > /proc/sys/vm/drop_caches",
        None,
    ]
    older = [each.command for each in advise(parents, None)]
    assert older == [commands[0], "echo 1 > /proc/sys/vm/drop_caches", None]
