"""Samples by thread: what is stored says what was recorded, and is not taken on trust."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.archive import thread_samples
from nodescope.archive.schema import make_batch
from nodescope.archive.thread_samples import (
    NEAR,
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


def make_samples(
    rows: Sequence[tuple[int, int, str | None, int]], ticks: Sequence[int] | None = None
) -> Any:
    pid, thread, cgroup, profile = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns: dict[str, Any] = {
        "cpu": np.zeros(len(rows), np.int16),
        "tick": np.array(range(len(rows)) if ticks is None else ticks, np.int64),
        "pid": np.array(pid, np.int32),
        "thread": np.array(thread, np.int32),
        "cgroup": list(cgroup),
        "profile": np.array(profile, np.int32),
    }
    return pa.Table.from_batches([make_batch("samples", columns)])


def read(stored: Any, threads: Any, names: list[str] = NAMES) -> Any:
    tables = {"threads": threads, "profile": PROFILE}
    chosen = stored.select(stored_columns(names, stored.column_names))
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


@given(samples, st.randoms(use_true_random=False), st.integers(0, 63))
def test_what_is_stored_is_read_again(
    rows: list[tuple[int, int, str | None, int]], random: Random, near: int
) -> None:
    ticks = [random.randrange(100) for _ in rows]  # of several cores, one after the other
    recorded = make_samples(rows, ticks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thread_samples, "NEAR", near)
        _check_round_trip(recorded)


def _check_round_trip(recorded: Any) -> None:
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
        {"step": 14, "thread": 0, "comm": 0, "cgroup": "/a", "often": 0},
        {"step": 0, "thread": 0, "comm": 1, "cgroup": "/a", "often": 0},
        {"step": 0, "thread": 0, "comm": 1, "cgroup": "/b", "often": 0},
    ]
    assert stored.column("back").to_pylist() == [0, 1, 0, 0, 3]
    assert stored.column("rank").to_pylist() == [0, 1, 2, 0, 0]  # of bash, then of cc1
    assert stored.column("later").to_pylist() == [0, 1, 1, 1, 1]


def test_a_thread_is_looked_for_in_the_order_of_time() -> None:
    rows = [(7, 0, None, 0), (8, 0, None, 0), (8, 0, None, 0), (7, 0, None, 0)]
    stored, threads = write_by_thread(make_samples(rows, [10, 40, 20, 30]), PROFILE)
    assert stored.column("back").to_pylist() == [0, 2, 0, 2]
    assert threads.column("step").to_pylist() == [14, 2]
    assert stored.column("later").to_pylist() == [10, 30, -20, 10]


def test_threads_that_come_again_after_long_are_numbered_by_how_often() -> None:
    others = [(pid, 0, None, 0) for pid in range(100, 100 + 2 * NEAR)]
    rows = [(7, 0, None, 0), (8, 0, None, 0), *others[:NEAR], (8, 0, None, 0), (7, 0, None, 0)]
    rows += [*others[NEAR:], (8, 0, None, 0)]
    stored, threads = write_by_thread(make_samples(rows), PROFILE)
    assert threads.column("often").to_pylist()[:3] == [2, 1, 0]
    back = stored.column("back").to_pylist()
    assert [back[place] for place in (2 + NEAR, 3 + NEAR, -1)] == [NEAR + 1, NEAR + 2, NEAR + 1]
    assert read(stored, threads).column("pid").to_pylist() == [row[0] for row in rows]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("back", [0, 2, 1]),  # above the first row
        ("back", [0, -1, 1]),
        ("back", [0, 0, 1]),  # a thread that is not there
        ("back", [0, NEAR + 1, 1]),  # one that is not numbered
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


@pytest.mark.parametrize("numbers", [[2], [-1]])
def test_threads_that_are_numbered_otherwise_are_damage(numbers: list[int]) -> None:
    stored, threads = write_by_thread(make_samples([(7, 0, None, 1)]), PROFILE)
    other = threads.set_column(4, "often", pa.array(numbers, pa.int32()))
    with pytest.raises(CorruptSegment, match="threads that threads does not have"):
        read(stored, other)
