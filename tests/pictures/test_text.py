from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.pictures.axis import ticks
from nodescope.pictures.text import columns_of, fit, fit_end, pad, percent, visible
from nodescope.quantities import SECOND_NS


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("kworker/0:1", "kworker/0:1"),
        ("operator<<(int&)", "operator<<(int&)"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\x00\x7f\x9b", "a\\x0ab\\x09c\\x00\\x7f\\x9b"),
        ("\u202eabc\u2028", "\\u202eabc\\u2028"),
        ("größer 日本", "größer 日本"),
        ("x" * 10_000, "x" * 511 + "…"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(name: str, shown: str) -> None:
    assert visible(name) == shown


@given(st.text())
def test_no_text_holds_anything_but_visible_characters(text: str) -> None:
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    assert not [c for c in visible(text) if unicodedata.category(c) in hidden]


@given(st.text(max_size=40), st.integers(0, 50))
def test_text_fits_any_width(text: str, width: int) -> None:
    shown = visible(text)
    assert columns_of(fit(shown, width)) <= width
    assert columns_of(pad(shown, width)) == width
    assert columns_of(fit_end(shown, width)) <= width
    if columns_of(shown) <= width:
        assert fit(shown, width) == shown


def test_wide_characters_take_two_columns() -> None:
    assert fit("日本語", 5) == "日本…"
    assert fit("日本語", 4) == "日…"
    assert pad("日", 3) == "日 "


def test_of_a_path_the_end_is_kept() -> None:
    assert fit_end("/usr/lib/libc.so.6", 10) == "…libc.so.6"
    assert fit_end("libc.so.6", 10) == "libc.so.6"


def test_percent_never_hides_something_as_nothing() -> None:
    assert [percent(ratio) for ratio in (0, 0.0001, 0.065, 1)] == [
        "0.0 %",
        "<0.1 %",
        "6.5 %",
        "100.0 %",
    ]


@given(st.integers(0, 2**60), st.integers(1, 10**15), st.integers(1, 30))
def test_ticks_are_few_round_and_inside(from_ns: int, length_ns: int, most: int) -> None:
    found = ticks(from_ns, from_ns + length_ns, most)
    assert len(found) <= most + 1
    assert all(from_ns <= tick < from_ns + length_ns and tick % SECOND_NS == 0 for tick in found)
