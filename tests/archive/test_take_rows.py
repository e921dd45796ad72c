from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive.schema import take_rows

INTEGERS = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
BATCHES = st.lists(st.lists(INTEGERS, max_size=20), min_size=1, max_size=3)


@given(BATCHES, st.data())
def test_numbers_with_nulls_keep_their_places(
    batches: list[list[int | None]], data: st.DataObject
) -> None:
    whole = [value for batch in batches for value in batch]
    table = pa.table({"value": pa.chunked_array([pa.array(b, pa.int64()) for b in batches])})
    cut = data.draw(st.integers(0, len(whole)))
    table, whole = table.slice(cut), whole[cut:]
    rows = data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=30)) if whole else []
    taken = take_rows(table, np.array(rows, np.int64))
    assert taken.column("value").to_pylist() == [whole[row] for row in rows]
