"""Fields of JSON that cannot be trusted, and times."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.wire import json_fields


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("1970-01-02T00:00:00Z", None),
        ("2026-11-16T12:13:09.358193749Z", 1794831189358193749),
        ("2026-11-16T12:13:09Z", 1794831189000000000),
        ("2026-11-16T14:13:09.5+02:00", 1794831189500000000),
        ("2026-11-16T07:13:09-05:00", 1794831189000000000),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
        ("2026-11-16T12:13:09", None),
        ("2026-xx-16T12:13:09Z", None),
        ("2026-11-16T12:13:09.abcZ", None),
        (None, None),
    ],
)
def test_time_of(said: str | None, expected: int | None) -> None:
    assert json_fields.time_of(said) == expected


@given(st.datetimes(datetime(1990, 1, 1), datetime(2099, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001 bounds are naive by definition
def test_times_come_back(moment: datetime) -> None:
    whole = int(moment.timestamp()) * 1_000_000_000
    expected = int(moment.replace(microsecond=0).timestamp()) * 10**9 + moment.microsecond * 1000
    assert json_fields.time_of(moment.isoformat().replace("+00:00", "Z")) == expected
    assert expected >= whole


@given(st.text(max_size=60))
def test_any_text_is_a_time_or_none(said: str) -> None:
    answer = json_fields.time_of(said)
    assert answer is None or isinstance(answer, int)
    number = json_fields.number_of(said)
    assert number is None or isinstance(number, int)


def test_wrong_types_are_missing() -> None:
    said = {"a": True, "b": 1 << 70, "c": [], "d": "", "e": 5, "f": "x" * 5000, "g": 0}
    assert [json_fields.whole(said, name) for name in "abce"] == [None, None, None, 5]
    assert [json_fields.text(said, name) for name in "acde"] == [None, None, None, None]
    assert len(json_fields.text(said, "f") or "") == json_fields.MAX_TEXT
    assert json_fields.process(said, "g") is None
    assert json_fields.inner(said, "c") == {}


def test_json_that_is_none_is_ours_to_say() -> None:
    for content in (b"", b"{", b"[" * 100_000, b"\xff\xfe", b"1" * 10_000):
        with pytest.raises(MalformedSource):
            json_fields.parse_object(content, "x")
    with pytest.raises(MalformedSource, match="an object was expected"):
        json_fields.parse_object(json.dumps([1]).encode(), "x")


def test_files_are_read_up_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 11)
    assert len(json_fields.read_bounded(tmp_path / "large", 11)) == 11
    with pytest.raises(MalformedSource, match="larger than"):
        json_fields.read_bounded(tmp_path / "large", 10)
    with pytest.raises(SourceAbsent):
        json_fields.read_bounded(tmp_path / "none", 10)
