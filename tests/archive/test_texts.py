"""Names that users give need not be Unicode; they must not stop a recording."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive.schema import ColumnData, make_batch


def _column(texts: list[str | None], *, table: str = "cgroup_names", name: str = "unit") -> object:
    rows = len(texts)
    columns: ColumnData = {"time_ns": [0] * rows, "cgroup": ["/"] * rows, name: texts}
    return make_batch(table, columns).column(name).to_pylist()


def test_a_name_that_is_not_utf8_is_told_with_a_mark() -> None:
    bad = os.fsdecode(b"bad\xff.service")
    assert _column([bad, "good.service", None]) == ["bad\ufffd.service", "good.service", None]


def test_lone_surrogates_of_other_origin_too() -> None:
    assert _column(["a\ud800b", "c"]) == ["a?b", "c"]


def test_plain_strings_too() -> None:
    columns: ColumnData = {
        "time_ns": [0], "sequence": [1], "level": [4], "facility": [0], "user": [False],
        "text": ["x\udcff"],
    }  # fmt: skip
    assert make_batch("kernel_log", columns).column("text").to_pylist() == ["x\ufffd"]


@given(st.lists(st.none() | st.text(st.characters(categories=("Cs", "L", "P")))))
def test_any_text_can_be_written(texts: list[str | None]) -> None:
    written = _column(texts)
    assert isinstance(written, list)
    assert [each is None for each in written] == [each is None for each in texts]
