"""What of a list fits into an answer."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from nodescope.pictures.answer_size import LARGEST, cut, fit_list, keep_fitting, size

_LISTS = st.lists(st.dictionaries(st.text(max_size=5), st.integers(), max_size=3), max_size=20)


@given(_LISTS, st.integers(2, 400))
def test_as_many_are_kept_as_fit_and_no_more(documents: list[dict[str, int]], room: int) -> None:
    kept = keep_fitting(documents, room)
    assert kept == documents[: len(kept)]
    assert not kept or len(json.dumps(kept, separators=(",", ":"))) <= room
    if len(kept) < len(documents):
        assert size(documents[: len(kept) + 1]) >= room


def test_what_is_left_out_is_said() -> None:
    assert fit_list([{"a": 1}]) == ([{"a": 1}], None)
    many = [{"name": "x" * 1000}] * 3000
    kept, said = fit_list(many)
    assert size(kept) <= LARGEST < size(many)
    assert said == f"{3000 - len(kept):,} further ones are left out: an answer ends at 2 MB"


def test_names_are_cut_at_the_length_any_answer_repeats() -> None:
    assert cut("x" * 512) == "x" * 512
    assert cut("x" * 600) == "x" * 511 + "…"
