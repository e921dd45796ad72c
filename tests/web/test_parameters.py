from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.cli.main import build_parser
from nodescope.errors import UsageError
from nodescope.records.sample_filter import FILTER_OPTIONS
from nodescope.web.declaration import Route, choice, flag, integer, text
from nodescope.web.parameters import (
    FILTERS,
    check_bounded,
    parse_moment,
    parse_ms,
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
    for name, written in (("cpu", "0-2,39"), ("pid", "1,22"), ("comm", "kube*")):
        assert check_bounded(name, written) == written
    for name, written in (
        ("cpu", "5-3"), ("cpu", ","), ("pid", "1,,2"), ("pid", "x"), ("comm", "*" * 7),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            check_bounded(name, written)


def test_they_are_the_filters_of_the_command_line() -> None:
    declared = {option.name: option.help for option in FILTER_OPTIONS}
    assert {each.name: each.help for each in FILTERS} == declared
    arguments = build_parser(["top"]).parse_args(["top"])
    assert declared.keys() <= vars(arguments).keys()


def test_no_expression_can_take_for_ever() -> None:
    for written in ("mem_cgroup", "a|b|c", "(a+)+$", "(..?)*x"):  # linear, whatever it is
        assert check_bounded("frame", written) == written
    for written in ("(a)\\1", "(?=a)", "("):
        with pytest.raises(UsageError):
            check_bounded("no_frame", written)
