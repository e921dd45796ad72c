from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import MalformedSource, SourceAbsent, SourceError
from nodescope.records.recorder_tables import CORE_STATES
from nodescope.sources.node.proc_stat import parse_cores, read_cores

STAT = b"""cpu  30 0 60 90 1 0 3 0 0 0
cpu0 10 0 20 30 1 0 1 0 0 0
cpu39 20 0 40 60 0 0 2 0 0 0
intr 99 1 2 3
ctxt 5
"""


def test_one_row_per_online_core_with_its_number() -> None:
    rows = parse_cores(STAT)
    assert rows[:, 0].tolist() == [0, 39]
    assert rows[1, 1 + CORE_STATES.index("system")] == 40


def test_the_states_stand_in_the_order_of_the_file() -> None:
    (row,) = parse_cores(b"cpu0 1 2 3 4 5 6 7 8 9 10\n").tolist()
    assert dict(zip(CORE_STATES, row[1:], strict=True)) == {
        "user": 1, "nice": 2, "system": 3, "idle": 4, "iowait": 5, "irq": 6, "softirq": 7,
        "steal": 8, "guest": 9, "guest_nice": 10,
    }  # fmt: skip


def test_the_live_file() -> None:
    rows = read_cores()
    assert len(rows) >= 1
    assert rows.shape[1] == len(CORE_STATES) + 1
    assert (rows >= 0).all()


def test_a_missing_file_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_cores(tmp_path)


@pytest.mark.parametrize("line", [b"cpu0 1 2 3", b"cpu0 a b c d e f g h i j", b"cpu0"])
def test_a_line_that_is_not_a_cores_is_named(line: bytes) -> None:
    with pytest.raises(MalformedSource, match="stat"):
        parse_cores(b"cpu  1 2 3 4 5 6 7 8 9 10\n" + line + b"\nintr 0\n")


@given(st.binary(max_size=300))
def test_nothing_but_our_own_errors(content: bytes) -> None:
    try:
        parse_cores(b"cpu" + content)
    except SourceError:
        pass
