"""Samples by thread: what is stored says what was recorded, and is not taken on trust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive.schema import make_batch
from nodescope.archive.thread_samples import (
    is_by_thread,
    read_by_thread,
    stored_columns,
    write_by_thread,
)
from nodescope.errors import CorruptSegment

NAMES = ["cpu", "tick", "pid", "thread", "cgroup", "profile"]
COMMS = ["bash", "cc1", "bash", "kubelet", "bash", "cc1"]  # of the rows of profile

PROFILE = pa.Table.from_batches(
    [
        make_batch(
            "profile",
            {
                "stack": np.arange(len(COMMS), dtype=np.int32),
                "comm": COMMS,
                "kernel": [False] * len(COMMS),
                "samples": np.ones(len(COMMS), np.int32),
            },
        )
    ]
)


def make_samples(rows: Sequence[tuple[int, int, str | None, int]]) -> Any:
    pid, thread, cgroup, profile = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns: dict[str, Any] = {
        "cpu": np.zeros(len(rows), np.int16),
        "tick": np.arange(len(rows), dtype=np.int64),
        "pid": np.array(pid, np.int32),
        "thread": np.array(thread, np.int32),
        "cgroup": list(cgroup),
        "profile": np.array(profile, np.int32),
    }
    return pa.Table.from_batches([make_batch("samples", columns)])


def read(stored: Any, threads: Any, names: list[str] = NAMES) -> Any:
    tables = {"threads": threads, "profile": PROFILE}
    chosen = stored.select(stored_columns(names))
    return read_by_thread(
        chosen, names, lambda table, wanted: tables[table].select(wanted), "here/samples.parquet"
    )


samples = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.integers(-1, 1),
        st.sampled_from([None, "/a", "/b"]),
        st.integers(0, len(COMMS) - 1),
    ),
    max_size=60,
)


@given(samples)
def test_what_is_stored_is_read_again(rows: list[tuple[int, int, str | None, int]]) -> None:
    recorded = make_samples(rows)
    stored, threads = write_by_thread(recorded, PROFILE)
    assert is_by_thread(stored.column_names)
    assert not is_by_thread(recorded.column_names)
    assert read(stored, threads).to_pydict() == recorded.to_pydict()
    for name in NAMES:
        assert read(stored, threads, [name]).to_pydict() == recorded.select([name]).to_pydict()


def test_a_thread_stands_once_until_its_name_or_cgroup_changes() -> None:
    rows = [(7, 0, "/a", 0), (7, 0, "/a", 2), (7, 0, "/a", 1), (7, 0, "/b", 1), (7, 0, "/a", 4)]
    stored, threads = write_by_thread(make_samples(rows), PROFILE)
    assert threads.to_pylist() == [
        {"step": 14, "thread": 0, "comm": 0, "cgroup": "/a"},
        {"step": 0, "thread": 0, "comm": 1, "cgroup": "/a"},
        {"step": 0, "thread": 0, "comm": 1, "cgroup": "/b"},
    ]
    assert stored.column("back").to_pylist() == [0, 1, 0, 0, 3]
    assert stored.column("rank").to_pylist() == [0, 1, 0, 0, 2]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("back", [0, 2, 1]),  # above the first row
        ("back", [0, -1, 1]),
        ("back", [0, 0, 1]),  # a thread that is not there
        ("rank", [0, 3, 0]),  # bash has three rows
        ("rank", [0, -1, 0]),
    ],
)
def test_what_refers_to_nothing_is_damage(column: str, values: list[int]) -> None:
    rows = [(7, 0, "/a", 0), (7, 0, "/a", 2), (7, 0, "/a", 4)]
    stored, threads = write_by_thread(make_samples(rows), PROFILE)
    place = stored.schema.get_field_index(column)
    damaged = stored.set_column(place, column, pa.array(values, pa.int32()))
    with pytest.raises(CorruptSegment, match=r"here/samples\.parquet.*does not have"):
        read(damaged, threads)


def test_a_comm_that_profile_does_not_have_is_damage() -> None:
    stored, threads = write_by_thread(make_samples([(7, 0, None, 1)]), PROFILE)
    for number in (3, -1):
        other = threads.set_column(2, "comm", pa.array([number], pa.int32()))
        with pytest.raises(CorruptSegment, match="comms that profile does not have"):
            read(stored, other)


def test_process_ids_are_kept_as_small_steps() -> None:
    rows = [(pid, 0, None, 0) for pid in (100, 103, 102, 2**22, 1)]
    _, threads = write_by_thread(make_samples(rows), PROFILE)
    assert threads.column("step").to_pylist()[:3] == [200, 6, 1]
