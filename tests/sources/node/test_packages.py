from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodescope.sources.node.packages import parse_needed

_STATUS = """\
Package: base
Status: install ok installed
Priority: required
Description: a
 b: c

Package: wanted
Status: install ok installed
Priority: optional
Provides: thing (= 1)

Package: leaf
Status: install ok installed
Priority: optional
Depends: base,
 thing:any (>= 2) | nothing
Recommends: leaf

Package: gone
Status: deinstall ok config-files
Priority: optional
Depends: leaf
"""


def test_who_is_needed() -> None:
    assert parse_needed(_STATUS) == {"base", "wanted"}


@given(st.text())
def test_whatever_is_written_there_is_read(text: str) -> None:
    parse_needed(text)
    parse_needed(_STATUS + text)
