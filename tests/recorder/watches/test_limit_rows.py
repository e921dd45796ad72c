from __future__ import annotations

import pytest

from nodescope.ingest.observation import Observation
from nodescope.recorder.watches.limit_rows import LimitRows
from nodescope.records.witness_tables import LimitRow, TroubleCountRow
from nodescope.sources.limits.reading import Limit, TroubleCount


@pytest.mark.parametrize(
    ("used", "most", "written"),
    [
        ([500, 505, 509, 510, 511], 1000, [500, 510]),
        ([0, 1, 2, 3], 4, [0, 1, 2, 3]),
        ([100, 105, 110, 119, 120], None, [100, 110]),
        ([5, 5, 5], 1, [5]),
    ],
)
def test_a_row_where_the_use_changed_noticeably(
    used: list[int], most: int | None, written: list[int]
) -> None:
    rows, said = LimitRows(), Observation()
    for at, value in enumerate(used):
        rows.add_limit(said, at, Limit("files", "node", value, most))
    assert [row.used for row in said.rows_of(LimitRow)] == written


def test_a_changed_limit_is_noticed_and_a_segment_has_all() -> None:
    rows, said = LimitRows(), Observation()
    rows.add_limit(said, 1, Limit("conntrack", "node", 5, 1000))
    rows.add_limit(said, 2, Limit("conntrack", "node", 5, 20))
    rows.add_count(said, 2, TroubleCount("oops_count", "", 1))
    rows.add_count(said, 3, TroubleCount("oops_count", "", 1))
    rows.begin_segment()
    rows.add_limit(said, 4, Limit("conntrack", "node", 5, 20))
    rows.add_count(said, 4, TroubleCount("oops_count", "", 1))
    assert [(row.time_ns, row.most) for row in said.rows_of(LimitRow)] == [
        (1, 1000),
        (2, 20),
        (4, 20),
    ]
    assert [row.time_ns for row in said.rows_of(TroubleCountRow)] == [2, 4]
