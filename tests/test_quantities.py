from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import UsageError
from nodescope.quantities import (
    MAX_CPU,
    SECOND_NS,
    format_bytes,
    format_count,
    format_cpu_list,
    format_duration,
    format_exact_duration,
    parse_cpu_list,
    parse_duration_ns,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("30s", 30 * SECOND_NS),
        ("30", 30 * SECOND_NS),
        ("100ms", SECOND_NS // 10),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("7ns", 7),
        ("1h30m", 5400 * SECOND_NS),
        ("1h 30m", 5400 * SECOND_NS),
        ("2min", 120 * SECOND_NS),
        ("1.5h", 5400 * SECOND_NS),
        ("1d", 86400 * SECOND_NS),
        (" 2 S ", 2 * SECOND_NS),
    ],
)
def test_durations(text: str, nanoseconds: int) -> None:
    assert parse_duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", " ", "s", "3x", "-1s", "1h30q", "1,5s", "s30", "1e3s", "1000000000d", "9" * 5000]
)
def test_not_durations(text: str) -> None:
    with pytest.raises(UsageError, match="not a duration") as caught:
        parse_duration_ns(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1000", 1000),
        ("4GiB", 4 << 30),
        ("4gib", 4 << 30),
        ("512 KiB", 512 << 10),
        ("150MB", 150_000_000),
        ("1.5k", 1500),
        ("2T", 2 * 10**12),
    ],
)
def test_sizes(text: str, count: int) -> None:
    assert parse_size_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "-1", "4XB", "4GiB3", "0x10"])
def test_not_sizes(text: str) -> None:
    with pytest.raises(UsageError, match="not a size") as caught:
        parse_size_bytes(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-5,39", [0, 1, 2, 3, 4, 5, 39]), ("", []), ("3\n", [3]), ("2,1,1-2", [1, 2]), ("0,", [0])],
)
def test_cpu_lists(text: str, cpus: list[int]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize(
    "text", ["5-1", "a", "1-", "-1", "1-2-3", f"0-{MAX_CPU + 1}", "0-99999999999"]
)
def test_not_cpu_lists(text: str) -> None:
    with pytest.raises(UsageError, match="not a list of CPUs"):
        parse_cpu_list(text)


@given(st.sets(st.integers(0, MAX_CPU), max_size=64))
def test_cpu_lists_survive_the_round_trip(cpus: set[int]) -> None:
    assert parse_cpu_list(format_cpu_list(list(cpus))) == sorted(cpus)


@given(st.integers(0, 2**62))
def test_a_formatted_duration_reads_back_close_to_itself(nanoseconds: int) -> None:
    back = parse_duration_ns(format_duration(nanoseconds))
    # three digits below a minute, whole seconds below an hour, minutes below two days, then hours
    error = 0.005 * nanoseconds + 1
    if nanoseconds >= 60 * SECOND_NS:
        error = max(error, SECOND_NS)
    if nanoseconds >= 3600 * SECOND_NS:
        error = 60 * SECOND_NS
    if nanoseconds >= 48 * 3600 * SECOND_NS:
        error = 3600 * SECOND_NS
    assert abs(back - nanoseconds) <= error


@given(st.one_of(st.integers(0, 2**62), st.integers(0, 10**7).map(lambda s: s * SECOND_NS)))
def test_an_exact_duration_reads_back_as_it_was(nanoseconds: int) -> None:
    assert parse_duration_ns(format_exact_duration(nanoseconds)) == nanoseconds


@given(st.integers(0, 2**62))
def test_a_formatted_size_reads_back_close_to_itself(count: int) -> None:
    assert abs(parse_size_bytes(format_bytes(count)) - count) <= 0.005 * count


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_usage_error(text: str) -> None:
    for parse in (parse_duration_ns, parse_size_bytes, parse_cpu_list):
        try:
            result = parse(text)
        except UsageError:
            continue
        assert isinstance(result, list) or result >= 0


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 gaps"), (1, "1 gap"), (2, "2 gaps"), (1204, "1,204 gaps")]
)
def test_counts_of_things(number: int, text: str) -> None:
    assert format_count(number, "gap") == text
