from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive.schema import make_numbers

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
