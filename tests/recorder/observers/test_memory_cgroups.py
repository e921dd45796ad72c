from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.recorder.observers.archived import keep, put_boot_id
from tests.sources.memory_cgroups.trees import PAGE, V1Tree, V2Tree

from nodescope.errors import SourceAbsent
from nodescope.ingest.observation import Observation
from nodescope.quantities import HOUR_NS, MINUTE_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import memory_cgroups
from nodescope.recorder.observers.memory_cgroups import MemoryCgroupsObserver
from nodescope.records.event_details import ZombieDetails
from nodescope.records.node_tables import DyingParentRow, MemoryCgroupsRow
from nodescope.sources.memory_cgroups.residual import read_parents
from nodescope.sources.memory_cgroups.walk import SLOW_NS, Walk
from nodescope.sources.places import Places


def _observer(places: Places, tmp_path: Path) -> MemoryCgroupsObserver:
    return memory_cgroups.make(Setting(places, tmp_path))


def _tree(tmp_path: Path, dying: int) -> V1Tree:
    tree = V1Tree(tmp_path)
    tree.group("/", {}, {"cache": dying * PAGE, "shmem": dying * PAGE})
    tree.group("/pods", {}, {"cache": dying * PAGE, "shmem": dying * PAGE})
    tree.track(dying)
    return tree


def _parents(said: Observation) -> list[DyingParentRow]:
    return said.rows_of(DyingParentRow)


def test_counts_parents_and_the_walk_are_told(tmp_path: Path) -> None:
    tree = _tree(tmp_path, 300)
    said = _observer(tree.places, tmp_path).observe(MINUTE_NS)
    (row,) = said.rows_of(MemoryCgroupsRow)
    assert row.walk_ns is not None
    assert row.walk_ns >= 0
    assert row == MemoryCgroupsRow(
        time_ns=MINUTE_NS, version="hybrid", tracked=302, visible=2, dying=300,
        walk_ns=row.walk_ns, walk_file=f"{tree.mount}/memory.numa_stat",
    )  # fmt: skip
    assert _parents(said) == [
        DyingParentRow(
            time_ns=MINUTE_NS, path="/pods", dying=300, kind="shmem", held_bytes=300 * PAGE
        )
    ]
    assert said.events == []


def test_parents_are_told_when_they_changed_and_with_each_segment(tmp_path: Path) -> None:
    tree = _tree(tmp_path, 300)
    observer = _observer(tree.places, tmp_path)
    observer.observe(0)
    assert _parents(observer.observe(HOUR_NS)) == []
    observer.begin_segment()
    assert [row.dying for row in _parents(observer.observe(HOUR_NS + MINUTE_NS))] == [300]
    tree.group("/pods", {}, {"cache": 500 * PAGE, "shmem": 500 * PAGE})
    tree.group("/", {}, {"cache": 500 * PAGE, "shmem": 500 * PAGE})
    tree.track(500)
    assert [row.dying for row in _parents(observer.observe(2 * HOUR_NS))] == [500]


def test_what_is_no_longer_held_is_told_once(tmp_path: Path) -> None:
    tree = _tree(tmp_path, 300)
    observer = _observer(tree.places, tmp_path)
    observer.observe(0)
    tree.group("/pods", {}, {})
    tree.group("/", {}, {})
    tree.track(0)
    rows = _parents(observer.observe(HOUR_NS))
    assert [(row.dying, row.held_bytes) for row in rows] == [(0, 0)]
    assert _parents(observer.observe(2 * HOUR_NS)) == []


def test_a_threshold_is_one_event_until_the_number_fell(tmp_path: Path) -> None:
    tree = _tree(tmp_path, 0)
    observer = _observer(tree.places, tmp_path)
    kinds = []
    for step, dying in enumerate(
        (100, 2_000, 2_100, 1_950, 2_050, 12_000, 9_500, 11_000, 0, 2_500)
    ):
        tree.track(dying)
        said = observer.observe(step * HOUR_NS)
        kinds.append([event.kind for event in said.events])
        if dying == 12_000:
            (event,) = said.events
            assert event.details == ZombieDetails(
                dying=12_000, tracked=12_002, visible=2, threshold=10_000
            )
    none: list[str] = []
    assert kinds == [
        none, ["zombies_warn"], none, none, none, ["zombies_critical"], none, none, none,
        ["zombies_warn"],
    ]  # fmt: skip


def _restarted(tmp_path: Path, *counts: int) -> list[list[str]]:
    """The events of a recorder that is started anew for each of these numbers."""
    kinds = []
    for step, dying in enumerate(counts):
        tree = _tree(tmp_path / "node", dying)
        put_boot_id(tree.root)
        observer = _observer(tree.places, tmp_path / "archive")
        said = observer.observe((step + 1) * HOUR_NS)
        kinds.append([event.kind for event in said.events])
        keep(tmp_path / "archive", said, (step + 1) * HOUR_NS)
    return kinds


def test_a_recorder_that_starts_again_does_not_tell_again(tmp_path: Path) -> None:
    none: list[str] = []
    counts = (2_500, 2_600, 1_900, 2_100, 12_000, 11_000, 9_500, 11_000)
    assert _restarted(tmp_path, *counts) == [
        ["zombies_warn"], none, none, none, ["zombies_critical"], none, none, none,
    ]  # fmt: skip


def test_what_fell_between_two_recorders_is_told_again(tmp_path: Path) -> None:
    none: list[str] = []
    assert _restarted(tmp_path / "warn", 2_500, 100, 2_500, 2_600) == [
        ["zombies_warn"], none, ["zombies_warn"], none,
    ]  # fmt: skip
    assert _restarted(tmp_path / "critical", 12_000, 5_000, 12_000) == [
        ["zombies_critical"], none, ["zombies_critical"],
    ]  # fmt: skip


def test_another_boot_is_told_of_anew(tmp_path: Path) -> None:
    assert _restarted(tmp_path, 2_500) == [["zombies_warn"]]
    put_boot_id(tmp_path / "node", "another")
    places = Places(tmp_path / "node")
    said = _observer(places, tmp_path / "archive").observe(2 * HOUR_NS)
    assert [event.kind for event in said.events] == ["zombies_warn"]


def _walked(monkeypatch: pytest.MonkeyPatch, took_ns: int) -> list[str]:
    """Every probe takes so long, and is noted."""
    walks: list[str] = []

    def probe(_hierarchy: object) -> Walk:
        walks.append("walk")
        return Walk("memory.numa_stat", took_ns)

    monkeypatch.setattr(memory_cgroups, "probe_walk", probe)
    return walks


def test_a_slow_walk_stays_rare_when_the_recorder_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = _walked(monkeypatch, SLOW_NS + 1)
    tree = _tree(tmp_path / "node", 300)
    put_boot_id(tree.root)
    archive = tmp_path / "archive"
    keep(archive, _observer(tree.places, archive).observe(HOUR_NS), HOUR_NS)
    assert len(walks) == 1
    for minutes in (1, 5, 9):
        said = _observer(tree.places, archive).observe(HOUR_NS + minutes * MINUTE_NS)
        assert (said.rows_of(MemoryCgroupsRow)[0].walk_ns, _parents(said)) == (None, [])
    assert len(walks) == 1
    later = _observer(tree.places, archive).observe(HOUR_NS + 10 * MINUTE_NS)
    assert len(walks) == 2
    assert _parents(later)


def test_a_quick_walk_is_not_rare_after_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = _walked(monkeypatch, SLOW_NS)
    tree = _tree(tmp_path / "node", 300)
    put_boot_id(tree.root)
    archive = tmp_path / "archive"
    keep(archive, _observer(tree.places, archive).observe(HOUR_NS), HOUR_NS)
    said = _observer(tree.places, archive).observe(HOUR_NS + MINUTE_NS)
    assert len(walks) == 2
    assert _parents(said)


@pytest.mark.parametrize(("took_ns", "rests"), [(SLOW_NS + 1, 10), (SLOW_NS // 100, 1)])
def test_parents_that_were_slow_to_read_are_read_every_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_ns: int, rests: int
) -> None:
    """Where `memory.stat` walks, each of these reads holds its core, like the probe."""
    cpu = [0]

    def slowly(hierarchy: Any, dying: int | None) -> Any:
        cpu[0] += took_ns
        return read_parents(hierarchy, dying)

    monkeypatch.setattr(memory_cgroups, "read_parents", slowly)
    monkeypatch.setattr("time.thread_time_ns", lambda: cpu[0])
    tree = _tree(tmp_path, 300)
    observer = _observer(tree.places, tmp_path)
    observer.observe(0)
    read_at = []
    for minute in range(1, 25):
        tree.track(300 + minute * 100)
        before = cpu[0]
        observer.observe(minute * MINUTE_NS)
        if cpu[0] != before:
            read_at.append(minute)
    assert read_at == list(range(rests, 25, rests))


def test_v2(tmp_path: Path) -> None:
    tree = V2Tree(tmp_path)
    tree.group("/", visible=1, dying=4)
    tree.group("/a", visible=0, dying=4, held={"file": 8 * PAGE})
    said = _observer(tree.places, tmp_path).observe(0)
    (row,) = said.rows_of(MemoryCgroupsRow)
    assert (row.version, row.tracked, row.dying) == ("v2", 6, 4)
    (parent,) = _parents(said)
    assert (parent.path, parent.dying, parent.kind) == ("/a", 4, "file")


def test_without_the_controller_it_is_absent_and_found_when_it_comes(tmp_path: Path) -> None:
    tree = _tree(tmp_path / "node", 3)
    observer = _observer(tree.places, tmp_path)
    observer.observe(0)
    shutil.move(tree.mount, tmp_path / "aside")
    with pytest.raises(SourceAbsent):
        observer.observe(HOUR_NS)
    shutil.move(tmp_path / "aside", tree.mount)
    assert observer.observe(2 * HOUR_NS).rows_of(MemoryCgroupsRow)
