from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import UsageError
from nodescope.quantities import MILLISECOND_NS, SECOND_NS
from nodescope.wall_time import (
    LATEST_NS,
    format_moment,
    format_time_of_day,
    match_iso,
    parse_date_time_ns,
    parse_moment_ns,
)
from nodescope.web.parameters import parse_moment

NOW = 1_777_636_805_000_000_000  # 2026-05-01T12:00:05Z


@pytest.mark.parametrize(
    ("text", "moment_ns"),
    [
        ("2026-05-01T12:00:05Z", NOW),
        ("2026-05-01T14:00:05.250+02:00", NOW + 250_000_000),
        ("@1777636805", NOW),
        ("@1777636805.000000007", NOW + 7),
        ("now", NOW),
        ("5m ago", NOW - 300_000_000_000),
        ("1h30m ago", NOW - 5_400_000_000_000),
    ],
)
def test_moments(text: str, moment_ns: int) -> None:
    assert parse_moment_ns(text, NOW) == moment_ns


def test_a_time_without_zone_is_utc_whatever_the_zone_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 13, point 1: the command line and the HTTP API read a time in the same way."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert parse_moment_ns("2026-05-01 12:00:05", NOW) == NOW
        assert parse_moment("2026-05-01 12:00:05") == NOW
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["", "yesterday", "ago", "x ago", "@", "@x", "1960-01-01", "5m", "@-5"]
)
def test_not_moments(text: str) -> None:
    with pytest.raises(UsageError, match="not a time") as caught:
        parse_moment_ns(text, NOW)
    assert caught.value.hint


@given(st.integers(0, LATEST_NS))
def test_what_is_printed_is_read_back_to_the_millisecond(moment_ns: int) -> None:
    printed = format_moment(moment_ns)
    whole_ns = moment_ns // MILLISECOND_NS * MILLISECOND_NS
    assert parse_moment_ns(printed, NOW) == whole_ns
    assert parse_date_time_ns(printed) == whole_ns
    assert parse_moment(printed) == whole_ns  # in an address of the page


def test_what_is_printed() -> None:
    moment_ns = NOW + 250 * MILLISECOND_NS
    assert format_moment(moment_ns) == "2026-05-01T12:00:05.250Z"
    assert format_time_of_day(moment_ns) == "12:00:05Z"


@given(st.integers(86_400, 4_000_000_000), st.integers(0, SECOND_NS - 1), st.integers(-14, 14))
def test_times_of_programs_are_read_to_the_nanosecond(second: int, rest: int, east: int) -> None:
    zone = timezone(timedelta(hours=east))
    written = datetime.fromtimestamp(second, zone).strftime("%Y-%m-%dT%H:%M:%S")
    text = f"{written}.{rest:09d}{east:+03d}:00"
    assert match_iso(f"{text} kernel: x") == (second * SECOND_NS + rest, True, len(text))


@pytest.mark.parametrize("text", ["", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00Z", "12:00:05"])
def test_not_times_of_programs(text: str) -> None:
    assert match_iso(text) is None


@given(st.text(max_size=20))
def test_any_text_is_a_moment_or_a_usage_error(text: str) -> None:
    try:
        assert parse_moment_ns(text, NOW) >= 0
    except UsageError:
        pass
