from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import UsageError
from nodescope.web.declaration import Route, choice, flag, integer, text
from nodescope.web.parameters import (
    parse_cpus,
    parse_moment,
    parse_ms,
    parse_names,
    parse_pids,
)
from nodescope.web.question import Reply

ROUTE = Route(
    "/x",
    "for this test",
    lambda question: Reply(b""),
    (),
    (
        integer("n", "a number", 1, 10, 5),
        choice("c", "a word", ("a", "b")),
        flag("f", "a flag"),
        text("t", "some text", 5),
    ),
)


def test_values_and_defaults() -> None:
    assert ROUTE.read([("n", "7"), ("f", "1")]) == {"n": 7, "c": None, "f": True, "t": None}
    assert ROUTE.read([]) == {"n": 5, "c": None, "f": False, "t": None}


@pytest.mark.parametrize(
    "pairs",
    [
        [("n", "0")], [("n", "11")], [("n", "1e1")], [("n", "")], [("n", "٣")], [("c", "x")],
        [("f", "yes")], [("t", "toolong")], [("t", "")], [("other", "1")],
        [("n", "1"), ("n", "2")],
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_by_name(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(UsageError) as caught:
        ROUTE.read(pairs)
    assert pairs[0][0] in str(caught.value)
    assert caught.value.hint


def test_times() -> None:
    assert parse_ms("1780000000000.25") == 1_780_000_000_000_250_000
    assert parse_ms("1.78e12") == 1_780_000_000_000_000_000
    assert parse_moment("1780000000000000001") == 1_780_000_000_000_000_001
    assert parse_moment("2026-05-28T20:26:40Z") == 1_780_000_000_000_000_000
    assert parse_moment("2026-05-28T20:26:40") == 1_780_000_000_000_000_000


@pytest.mark.parametrize("given", ["", "-1", "nan", "inf", "1e300", "9" * 30, "0x10", "1_0", "٣"])
def test_absurd_times_are_refused(given: str) -> None:
    with pytest.raises(UsageError):
        parse_ms(given)
    with pytest.raises(UsageError):
        parse_moment(given)


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_refused(given: str) -> None:
    for parse in (parse_ms, parse_moment):
        try:
            assert 0 <= parse(given) < 2**63
        except UsageError:
            continue


def test_filters() -> None:
    assert parse_cpus("0-2,39") == {0, 1, 2, 39}
    assert parse_pids("1,22") == {1, 22}
    assert parse_names("kube*") == ("kube*",)
    for parse, written in (
        (parse_cpus, "5-3"), (parse_cpus, ","), (parse_pids, "1,,2"), (parse_pids, "x"),
        (parse_names, "*" * 7),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            parse(written)
