"""Typed rows: how they are made, compared and turned into columns."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from nodescope.records.columns import columns_by_table, columns_of
from nodescope.records.node_tables import NODE_ROWS, MemoryRow, PressureRow
from nodescope.records.recorder_tables import CoreRow, EventRow, Gap, HeartbeatRow
from nodescope.records.table import Row

EVERY = (*NODE_ROWS, CoreRow, EventRow, Gap, HeartbeatRow)


@pytest.mark.parametrize("again", [False, True], ids=["first", "later"])
def test_what_is_left_out_has_its_default(again: bool) -> None:
    class FreshRow(Row, table="fresh", help=""):
        time_ns: int
        name: str | None = None

    if again:
        FreshRow(time_ns=0)
    row = FreshRow(time_ns=1)
    assert (row.time_ns, row.name) == (1, None)
    assert row.replace(name="a") == FreshRow(time_ns=1, name="a")
    for wrong in ({"name": "a"}, {"time_ns": 1, "what": 2}):
        with pytest.raises(TypeError):
            FreshRow(**wrong)


@pytest.mark.parametrize("kind", EVERY)
def test_every_row_keeps_each_value_and_cannot_be_changed(kind: Callable[..., Row]) -> None:
    names = kind.names()  # type: ignore[attr-defined]
    values = {name: f"value of {name}" for name in names}
    row = kind(**values)
    assert row.as_dict() == values
    assert pickle.loads(pickle.dumps(row)) == row
    for name in names:
        with pytest.raises(AttributeError):
            setattr(row, name, 0)


def _pressure(time_ns: int, some_us: int | None) -> PressureRow:
    return PressureRow(time_ns=time_ns, cgroup="/", resource="cpu", some_us=some_us)


def test_a_row_repeats_one_that_differs_in_time_only() -> None:
    row = _pressure(2, 7)
    assert row.is_repeat_of(_pressure(1, 7))
    assert not row.is_repeat_of(_pressure(2, 8))
    assert not row.is_repeat_of(_pressure(2, None))
    assert not row.is_repeat_of(None)


def test_columns_have_every_declared_name_and_null_where_nothing_is_known() -> None:
    assert columns_of([_pressure(1, 7), _pressure(2, None)]) == {
        "time_ns": [1, 2], "cgroup": ["/", "/"], "resource": ["cpu", "cpu"],
        "some_us": [7, None], "full_us": [None, None],
    }  # fmt: skip


def test_rows_of_several_tables_become_columns_by_table_in_their_order() -> None:
    memory = [MemoryRow(time_ns=time, name="a", value=time) for time in (1, 2)]
    found: dict[str, Any] = columns_by_table([memory[0], _pressure(1, 1), memory[1]])
    assert list(found) == ["memory", "pressure"]
    assert found["memory"] == {"time_ns": [1, 2], "name": ["a", "a"], "value": [1, 2]}
    assert columns_by_table([]) == {}
