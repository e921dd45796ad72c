"""How far counters rose in a window, over segments and new starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodescope.analysis.counters import Array, Counters, SegmentTables, groups, latest_rows
from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.lab.synthetic import HandClock
from nodescope.recording.window import Window


class Rows:
    def __init__(self, *rows: tuple[int, str, int | None]) -> None:
        self.rows = rows

    def columns(self, table: str, names: Sequence[str]) -> Mapping[str, Array]:
        of = {"time_ns": (0, np.int64), "nic": (1, object), "value": (2, np.float64)}
        return {
            name: np.array([row[of[name][0]] for row in self.rows], of[name][1]) for name in names
        }


def rise(window: Window, *parts: Rows) -> dict[Any, dict[str, int]]:
    counters = Counters("any", ["nic"], ["value"])
    for part in parts:
        counters.add(part, window)
    return counters.rises


def test_what_rose_in_the_window_alone() -> None:
    rows = Rows((10, "a", 5), (20, "a", 7), (30, "a", 17), (40, "a", 117), (10, "b", 1))
    assert rise(Window(15, 35), rows) == {("a",): {"value": 12}, ("b",): {"value": 0}}


def test_a_segment_goes_on_where_the_one_before_ended() -> None:
    first, second = Rows((10, "a", 5), (20, "a", 7)), Rows((30, "a", 9), (40, "a", 10))
    assert rise(Window(15, 99), first, second) == {("a",): {"value": 5}}
    assert rise(Window(25, 99), second) == {("a",): {"value": 1}}


def test_a_counter_that_starts_anew_counts_from_there() -> None:
    assert rise(Window(0, 99), Rows((1, "a", 100), (2, "a", 3), (3, "a", 8))) == {
        ("a",): {"value": 5}
    }


def test_what_is_not_known_is_not_zero() -> None:
    rows = Rows((1, "a", None), (2, "a", None), (1, "b", None), (2, "b", 4), (3, "b", 6))
    assert rise(Window(0, 99), rows) == {("b",): {"value": 2}}
    assert rise(Window(0, 99), Rows()) == {}


def test_the_last_row_before_a_moment() -> None:
    rows = Rows((1, "a", 1), (2, "a", 2), (3, "a", 3), (3, "b", 9))
    assert latest_rows(rows, "any", ["nic"], ["value"], 3) == {("a",): {"nic": "a", "value": 2}}


def test_runs_of_equal_keys() -> None:
    names = np.array(["x", "x", None], object)
    assert list(groups([np.array([1, 1, 1]), names])) == [((1, "x"), 0, 2), ((1, None), 2, 3)]
    assert list(groups([np.array([])])) == []


def test_words_that_nobody_knows_are_none(tmp_path: Path) -> None:
    # as of a node whose only device is virtual: no driver, no version, no bus
    clock = HandClock(1000, 0)
    node = {"name": "n", "boot_id": "b"}
    with ArchiveWriter.open(tmp_path / "a", node=node, clock=clock, tick_ns=1000) as writer:
        writer.append("nics", {"time_ns": [1000], "nic": ["veth0"]})
    (segment,) = Archive.open(tmp_path / "a").segments()
    found = SegmentTables(segment).columns("nics", ["time_ns", "nic", "driver", "up"])
    assert found["nic"].tolist() == ["veth0"]
    assert found["driver"].tolist() == [None]
