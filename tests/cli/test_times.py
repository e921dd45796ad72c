from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.cli.times import format_moment, parse_moment_ns
from nodescope.errors import UsageError

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


def test_a_time_without_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert parse_moment_ns("2026-05-01 21:00:05", NOW) == NOW
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "yesterday", "ago", "x ago", "@", "@x", "1960-01-01", "5m"])
def test_not_moments(text: str) -> None:
    with pytest.raises(UsageError, match="not a time") as caught:
        parse_moment_ns(text, NOW)
    assert caught.value.hint


@given(st.integers(0, 2**63 - 1))
def test_moments_survive_the_round_trip_to_the_millisecond(moment_ns: int) -> None:
    back = parse_moment_ns(format_moment(moment_ns), NOW)
    assert back == moment_ns // 1_000_000 * 1_000_000


@given(st.text(max_size=20))
def test_any_text_is_a_moment_or_a_usage_error(text: str) -> None:
    try:
        assert parse_moment_ns(text, NOW) >= 0
    except UsageError:
        pass
