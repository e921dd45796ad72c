"""How many zombies at this moment: one reading, of a recording or of a live look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.sources.memory_cgroups.trees import PAGE, V1Tree

from nodescope.judgement.zombie_reading import (
    ZombieReading,
    of_look,
    read_dying,
    read_walk,
    read_zombies,
)
from nodescope.judgement.zombie_report import Report, assess_recorded
from nodescope.quantities import SECOND_NS
from nodescope.recording.coverage import NotObserved
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.node_tables import DyingParentRow, MemoryCgroupsRow, MemoryRow
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.memory_cgroups.survey import take_look
from nodescope.sources.memory_cgroups.walk import Walk

NOW = 10_000 * SECOND_NS


def counted(before_s: int, dying: int | None, **more: Any) -> MemoryCgroupsRow:
    values: dict[str, Any] = {"version": "v1", "tracked": 9_000, "visible": 40, **more}
    return MemoryCgroupsRow(time_ns=NOW - before_s * SECOND_NS, dying=dying, **values)


def parent(before_s: int, path: str, dying: int | None, **more: Any) -> DyingParentRow:
    return DyingParentRow(time_ns=NOW - before_s * SECOND_NS, path=path, dying=dying, **more)


def read(*rows: Any) -> ZombieReading:
    found = read_zombies(recording_of(rows), NOW)
    assert isinstance(found, ZombieReading)
    return found


def test_the_last_count_up_to_the_moment_is_read_with_its_time() -> None:
    reading = read(counted(30, 8_000), counted(10, 8_960), counted(-10, 9_999))
    assert (reading.tracked, reading.visible, reading.dying) == (9_000, 40, 8_960)
    assert reading.read_ns == NOW - 10 * SECOND_NS


def test_what_nobody_counted_was_not_observed() -> None:
    other = MemoryRow(time_ns=NOW, name="MemTotal", value=1)
    assert isinstance(read_zombies(recording_of([other]), NOW), NotObserved)
    assert isinstance(assess_recorded(recording_of([other]), NOW), NotObserved)


def test_parents_have_their_own_time_and_are_estimates_on_v1() -> None:
    reading = read(
        counted(10, 8_960),
        parent(300, "/a", 9_900, kind="file", held_bytes=7),  # held then, and no longer told of
        parent(60, "/a", 100, kind="shmem", held_bytes=5),
        parent(60, "/b", 8_000),
        parent(60, "/gone", 0, kind="file", held_bytes=0),
    )
    assert [(each.path, each.dying, each.exact) for each in reading.parents] == [
        ("/b", 8_000, False), ("/a", 100, False)
    ]  # fmt: skip
    assert {each.read_ns for each in reading.parents} == {NOW - 60 * SECOND_NS}
    assert reading.parents[1].held == {"file": 7, "shmem": 5}
    on_v2 = read(counted(10, 5, version="v2"), parent(60, "/b", 5))
    assert on_v2.parents[0].exact


def test_where_they_are_not_counted_at_most_what_is_not_visible_is_dying() -> None:
    reading = read(counted(10, None))
    assert (reading.dying, reading.likely_dying) == (None, 8_960)


def test_the_last_walk_is_found_though_later_counts_had_none() -> None:
    recording = recording_of(
        [counted(90, 5, walk_ns=7, walk_file="/f"), counted(30, 5), counted(-9, 5, walk_ns=9)]
    )
    assert read_walk(recording, NOW) == Walk("/f", 7)


def test_counts_of_a_window() -> None:
    recording = recording_of([counted(30, 3), counted(20, None), counted(10, 4)])
    window = Window(NOW - 40 * SECOND_NS, NOW)
    assert [dying for _, dying in read_dying(recording, window)] == [3, 4]


def test_a_live_look_is_the_same_reading(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    tree.group("/", {}, {"cache": 4_000 * PAGE})
    tree.group("/pods", {}, {"cache": 3_000 * PAGE})
    tree.track(4_000)
    reading = of_look(take_look(find_memory_hierarchy(tree.places), apart_s=0))
    assert (reading.tracked, reading.visible, reading.dying) == (4_002, 2, 4_000)
    assert reading.read_ns is None


def test_a_recorded_verdict_names_what_it_does_not_rest_on() -> None:
    report = assess_recorded(recording_of([counted(10, 8_960)]), NOW)
    assert isinstance(report, Report)
    assert report.verdict.level == "warn"
    assert report.not_observed == (
        "what reading statistics costs", "what share of memory they take", "who makes cgroups",
        "under which parents they are",
    )  # fmt: skip
    slow = assess_recorded(recording_of([counted(10, 8_960, walk_ns=600_000_000)]), NOW)
    assert isinstance(slow, Report)
    assert slow.verdict.level == "critical"
