from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive.reader import Archive
from nodescope.archive.schema import conform, make_numbers

OLDER = Path(__file__).parents[1] / "diagnosis" / "bundles" / "zombie-agent.bundle"

Values = st.lists(st.tuples(st.integers(-(2**15), 2**15 - 1), st.booleans()), max_size=40)


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, np.bool_])
@given(values=Values)
def test_numbers_are_what_they_were_and_null_where_absent(
    kind: type[np.generic], values: list[tuple[int, bool]]
) -> None:
    numbers = np.array([number for number, _ in values]).astype(kind)
    absent = np.array([is_absent for _, is_absent in values], bool)
    made = make_numbers(numbers, absent)
    made.validate(full=True)
    expected = [None if a else n for n, a in zip(numbers.tolist(), absent.tolist(), strict=True)]
    assert made.to_pylist() == expected
    assert make_numbers(numbers).to_pylist() == numbers.tolist()


def test_a_column_of_a_matrix_may_be_one() -> None:
    matrix = np.arange(12, dtype=np.int64).reshape(4, 3)
    assert make_numbers(matrix[:, 1]).to_pylist() == [1, 4, 7, 10]


def test_what_a_recorder_appends_does_not_import_masked_arrays() -> None:
    code = (
        "import sys, numpy as np\n"
        "from nodescope.archive.schema import make_batch\n"
        "row = np.zeros(1, np.int64)\n"
        "make_batch('samples', {'cpu': row, 'tick': row, 'pid': row, 'thread': row,\n"
        "    'cgroup': (np.array([-1]), []), 'profile': row})\n"
        "print('numpy.ma' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch])
def test_what_an_older_version_wrote_gets_the_names_of_today(kind: Any) -> None:
    written = kind.from_pylist(
        [{"unit": "a.service", "exit_code": "exited", "exit_status": 3, "time_ns": 5}]
    )
    read = conform("units", written, ["time_ns", "exit_kind", "exit_status", "preset"])
    assert read.to_pylist() == [
        {"time_ns": 5, "exit_kind": "exited", "exit_status": 3, "preset": None}
    ]


def test_what_has_the_name_of_today_is_left_alone() -> None:
    written = pa.Table.from_pylist([{"exit_code": 4, "exit_status": 3}])
    assert conform("containers", written, ["exit_status"]).to_pylist() == [{"exit_status": 3}]


def test_segments_of_an_older_version_are_read_by_the_names_of_today() -> None:
    """A bundle whose tables have `exit_code`, a word for units and a number for containers."""
    rows = [
        row
        for segment in Archive.open(OLDER).segments()
        for row in segment.read("units", ["exit_kind", "exit_status"]).to_pylist()
    ]
    assert {(row["exit_kind"], row["exit_status"]) for row in rows} == {
        (None, None), ("exited", 0), ("exited", 5),
    }  # fmt: skip
    alone = [
        kind
        for segment in Archive.open(OLDER).segments()
        for kind in segment.read("units", ["exit_kind"]).column("exit_kind").to_pylist()
    ]
    assert alone == [row["exit_kind"] for row in rows]
