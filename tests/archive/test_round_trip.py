"""What is appended is what is read: open, sealed, and recovered."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodescope.archive.reader import Archive
from nodescope.errors import UsageError

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Toolbox

MODULES = st.sampled_from(["[kernel]", "/usr/bin/ünï", "", "[unknown]"])
FRAMES = st.tuples(MODULES, st.text(max_size=6), st.booleans())
STACKS = st.lists(FRAMES, min_size=1, max_size=6).map(tuple)


def batches_of(stacks: list[tuple[Any, ...]]) -> st.SearchStrategy[list[list[tuple[Any, ...]]]]:
    """Flushes of samples over few stacks, so that stacks, comms and ticks collide."""
    sample = st.tuples(
        st.integers(0, 3),
        st.integers(0, 40_000),
        st.integers(0, 2**22),
        st.integers(-5, 5),
        st.sampled_from([None, "/", "/a/b"]),
        st.sampled_from(["x", "y", "ü z"]),
        st.booleans(),
        st.sampled_from(stacks),
    )
    return st.lists(st.lists(sample, max_size=15), min_size=1, max_size=4)


RECORDINGS = st.lists(STACKS, min_size=1, max_size=8).flatmap(batches_of)


@given(RECORDINGS)
@settings(max_examples=80, deadline=None)
def test_samples_survive_with_their_stacks(
    tools: type[Toolbox], batches: list[list[tuple[Any, ...]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        studio = tools.Studio(Path(folder) / "archive", tools.FakeClock())
        tape = studio.open()
        expected: Counter[Any] = Counter()
        for batch in batches:
            samples = [tools.Sample(*values) for values in batch]
            expected.update(samples)
            tape.append(samples)
            tape.writer.flush()
        archive = Archive.open(studio.root)
        for segment in archive.segments():
            assert segment.is_open
            assert tools.read_samples(segment) == expected
        tape.writer.close()
        sealed = archive.segments()
        assert len(sealed) == bool(expected)
        for segment in sealed:
            assert not segment.is_open
            assert tools.read_samples(segment) == expected
            check_invariants(segment)


def check_invariants(segment: Any) -> None:
    """What the declarations promise of a sealed segment."""
    samples = segment.read("samples").to_pylist()
    order = [(row["cpu"], row["tick"]) for row in samples]
    assert order == sorted(order)

    profile = segment.read("profile").to_pylist()
    counts = Counter(row["profile"] for row in samples)
    assert [row["samples"] for row in profile] == [counts[row] for row in range(len(profile))]
    assert all(row["samples"] for row in profile)
    powers = [row["samples"].bit_length() for row in profile]
    assert powers == sorted(powers, reverse=True)
    keys = [(row["stack"], row["comm"], row["kernel"]) for row in profile]
    assert len(set(keys)) == len(keys)

    frames = segment.read("frames").to_pylist()
    names = [(row["kernel"], row["module"], row["name"]) for row in frames]
    assert names == sorted(set(names))
    stacks = segment.read("stacks").to_pylist()
    assert {row["frame"] for row in stacks} == set(range(len(frames)))
    depths = [row["depth"] for row in stacks]
    assert depths[0] == 0
    assert all(0 <= after <= before + 1 for before, after in pairwise(depths))

    seconds: Counter[Any] = Counter()
    for row in samples:
        second = row["tick"] * segment.tick_ns // 1_000_000_000
        seconds[row["cpu"], second, profile[row["profile"]]["kernel"]] += 1
    rolled = segment.read("seconds").to_pylist()
    assert [(row["cpu"], row["second"]) for row in rolled] == sorted(
        {(cpu, second) for cpu, second, _ in seconds}
    )
    for row in rolled:
        assert row["user"] == seconds[row["cpu"], row["second"], False]
        assert row["kernel"] == seconds[row["cpu"], row["second"], True]


def test_equal_rows_under_different_numbers_become_one(
    studio: Studio, tools: type[Toolbox]
) -> None:
    writer = studio.open().writer
    writer.append("frames", {"module": ["m", "m"], "name": ["f", "f"], "kernel": [False, False]})
    writer.append("stacks", {"depth": [0, 1, 0, 1], "frame": [0, 1, 1, 0]})
    writer.append(
        "profile",
        {"stack": [1, 3], "comm": ["c", "c"], "kernel": [False, False], "samples": [0, 0]},
    )
    zeros = np.zeros(2, np.int64)
    writer.append(
        "samples",
        {
            "cpu": zeros,
            "tick": zeros,
            "pid": zeros,
            "thread": zeros,
            "cgroup": [None, None],
            "profile": np.arange(2),
        },
    )
    writer.close()
    (segment,) = Archive.open(studio.root).segments()
    assert len(segment.read("frames")) == 1
    assert segment.read("stacks").to_pylist() == [
        {"depth": 0, "frame": 0},
        {"depth": 1, "frame": 0},
    ]
    assert segment.read("profile").column("samples").to_pylist() == [2]


def test_other_tables_come_back_sorted_with_nulls(studio: Studio) -> None:
    tape = studio.open()
    tape.writer.append(
        "gaps",
        {
            "from_ns": [30, 10, 20],
            "to_ns": [31, 11, 21],
            "source": ["all", "cores", "all"],
            "cpu": [None, 3, None],
            "lost": [None, None, 7],
            "reason": ["late", "ä", ""],
        },
    )
    tape.writer.append(
        "events", {"time_ns": [5], "kind": ["oom"], "subject": ["n1"], "message": ["killed"]}
    )
    tape.writer.close()
    (segment,) = Archive.open(studio.root).segments()
    gaps = segment.read("gaps").to_pylist()
    assert [gap["from_ns"] for gap in gaps] == [10, 20, 30]
    assert [gap["cpu"] for gap in gaps] == [3, None, None]
    assert [gap["lost"] for gap in gaps] == [None, 7, None]
    assert [gap["reason"] for gap in gaps] == ["ä", "", "late"]
    assert segment.read("events", ["message"]).to_pylist() == [{"message": "killed"}]
    assert len(segment.read("samples")) == 0


def test_text_may_be_given_as_numbers_and_values(studio: Studio) -> None:
    writer = studio.open().writer
    writer.append("frames", {"module": ["m"], "name": ["f"], "kernel": [False]})
    writer.append("stacks", {"depth": [0], "frame": [0]})
    writer.append("profile", {"stack": [0], "comm": ["c"], "kernel": [False], "samples": [0]})
    for values in (["/a", "/b"], ["/b", "/c"]):  # another dictionary with each flush
        writer.append(
            "samples",
            {
                "cpu": np.zeros(3, np.int16),
                "tick": np.arange(3),
                "pid": np.arange(3),
                "thread": np.zeros(3, np.int32),
                "cgroup": (np.array([1, -1, 0]), values),
                "profile": np.zeros(3, np.int32),
            },
        )
        writer.flush()
    writer.close()
    (segment,) = Archive.open(studio.root).segments()
    texts = sorted(map(str, segment.read("samples", ["cgroup"])["cgroup"].to_pylist()))
    assert texts == ["/a", "/b", "/b", "/c", "None", "None"]


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        ("seconds", {}, "not a table that is recorded"),
        ("stacks", {"depth": [0]}, "missing"),
        ("stacks", {"depth": [0], "frame": [0, 1]}, "different lengths"),
        ("stacks", {"depth": [None], "frame": [0]}, "may not be null"),
        ("stacks", {"depth": np.array([2**40]), "frame": [0]}, "does not fit"),
        ("stacks", {"depth": ["x"], "frame": [0]}, "depth"),
        ("stacks", {"depth": [0], "frame": [0], "more": [0]}, "unknown columns"),
    ],
)
def test_what_does_not_fit_the_declaration_is_refused(
    studio: Studio, table: str, columns: dict[str, Any], said: str
) -> None:
    tape = studio.open()
    with pytest.raises(UsageError, match=said):
        tape.writer.append(table, columns)
    assert tape.writer.flush() == 0
    tape.writer.close()


def test_an_empty_segment_leaves_nothing(studio: Studio) -> None:
    tape = studio.open()
    assert tape.writer.seal_segment() is None
    tape.writer.close()
    assert Archive.open(studio.root).segments() == []


def test_files_are_private(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    tape.append(tools.make_samples(0, 10))
    tape.seal()
    tape.append(tools.make_samples(10, 10))
    tape.writer.flush()
    for path in studio.root.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path
    tape.writer.close()
