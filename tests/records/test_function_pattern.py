from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import UsageError
from nodescope.records.function_pattern import FunctionPattern, check_function_pattern

NAMES = ["mem_cgroup_nr_lru_pages", "kubelet_walk", "std::x::operator()", "abc", "c", ""]


@pytest.mark.parametrize(
    "written",
    [
        "mem_cgroup",
        "^kube.*walk$",
        "a|b|c",
        r"operator\(\)",
        "[a-z]+::x",
        "(?:ab)?c$",
        "(?i)LRU",
        "",
    ],
)
def test_expressions_that_are_used(written: str) -> None:
    pattern = FunctionPattern(check_function_pattern(written))
    expected = [re.search(written, name) is not None for name in NAMES]
    assert pattern.match(NAMES).tolist() == expected


@pytest.mark.parametrize(
    "written", ["(..?)*§", "(a+)+§", ".*" * 20 + "§", "(a|aa)*§", "((a+)b?)+§"]
)
def test_no_expression_takes_longer_than_linear_time(written: str) -> None:
    """With Python's `re` each of these would outlast the universe."""
    assert not FunctionPattern(written).match(["a" * 5000]).any()


@pytest.mark.parametrize("written", ["(", "[", "(?", "*", r"(a)\1", "(?=a)b", "a{2000}", "\ud800"])
def test_what_cannot_be_matched_so_is_refused_with_a_hint(written: str) -> None:
    with pytest.raises(UsageError, match="not a regular expression: ") as raised:
        check_function_pattern(written)
    assert "look-around" in str(raised.value.hint)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # `[[` may come to mean something else
@given(
    st.from_regex(r"[ab().*+?|\[\]^$]{0,12}", fullmatch=True),
    st.lists(st.text("ab+", max_size=6), max_size=5),
)
def test_an_expression_means_what_it_means_to_python(written: str, names: list[str]) -> None:
    try:
        pattern, reference = FunctionPattern(check_function_pattern(written)), re.compile(written)
    except (UsageError, re.error):
        return
    expected = [reference.search(name) is not None for name in names]
    assert pattern.match(names).tolist() == expected
