from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodescope.analysis.makers import find_makers, rank_makers
from nodescope.analysis.window import Window
from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


class HandClock:
    def __init__(self) -> None:
        self.now = 1_000 * SECOND

    def monotonic_ns(self) -> int:
        return self.now

    def wall_ns(self) -> int:
        return START + self.now - 1_000 * SECOND


def row(second: int, parent: str, **values: Any) -> dict[str, Any]:
    return {
        "time_ns": (1_000 + second) * SECOND, "parent": parent, "pattern": "*", "maker": "runc",
        "maker_pid": None, "workload": None, "made": 0, "removed": 0, "released": 0,
        "attached": 0, "unreleased": 0, "way": "tracepoints",
    } | values  # fmt: skip


def test_counts_are_summed_and_the_last_level_counts() -> None:
    rows = [
        row(10, "/docker", made=5, removed=5, released=5, maker_pid=7, workload="agent"),
        row(20, "/docker", made=5, removed=5, unreleased=3, maker_pid=8),
    ]
    (maker,) = rank_makers(rows, 120.0)
    assert (maker.parent, maker.made, maker.unreleased) == ("/docker", 10, 3)
    assert maker.per_minute == 5.0
    assert maker.held_share == 0.5
    assert (maker.pids, maker.workloads) == ((7, 8), ("agent",))


def test_parents_of_one_pattern_are_told_as_one() -> None:
    rows = [row(10, f"/pods/pod{number}", made=1, unreleased=1) for number in range(4)]
    (maker,) = rank_makers(rows, 60.0)
    assert (maker.parent, maker.parents, maker.made) == ("/pods/pod*", 4, 4)
    assert maker.unreleased == 4


def test_those_whose_cgroups_stay_come_first() -> None:
    rows = [row(1, "/busy", made=100), row(1, "/leak", made=2, unreleased=1)]
    assert [each.parent for each in rank_makers(rows, 60.0)] == ["/leak", "/busy"]


def test_scans_know_no_releases() -> None:
    (maker,) = rank_makers([row(1, "/a", made=1, removed=1, unreleased=None, maker=None)], 60.0)
    assert maker.unreleased is None
    assert maker.held_share is None
    assert maker.maker is None


def test_nothing_recorded_has_no_rate() -> None:
    assert rank_makers([], 0.0) == []
    assert rank_makers([row(1, "/a", made=1)], 0.0)[0].per_minute == 0.0


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    clock = HandClock()
    node = {"name": "hand", "boot_id": "b"}
    with ArchiveWriter.open(tmp_path / "a", node=node, clock=clock, tick_ns=1000) as writer:
        rows = [row(30, "/a", made=3, removed=3), row(90, "/a", made=4, unreleased=2)]
        writer.append("cgroup_churn", {name: [each[name] for each in rows] for name in rows[0]})
        for second in (0, 119):
            at = (1_000 + second) * SECOND
            beat = {"time_ns": at, "wall_ns": START + second * SECOND, "cpu_ns": 0, "rss_bytes": 0,
                    "written_bytes": 0, "samples": 0, "lost": 0, "late_ns": 0,
                    "frequency_hz": 97}  # fmt: skip
            writer.append("heartbeats", {name: [value] for name, value in beat.items()})
        clock.now += 120 * SECOND
        writer.seal_segment()
    return Archive.open(tmp_path / "a")


def test_only_the_window_counts(archive: Archive) -> None:
    segments = archive.segments()
    (whole,) = find_makers(segments, Window(START, START + 120 * SECOND))
    assert (whole.made, whole.removed, whole.unreleased) == (7, 3, 2)
    (late,) = find_makers(segments, Window(START + 60 * SECOND, START + 100 * SECOND))
    assert (late.made, late.removed) == (4, 0)
    assert late.per_minute == pytest.approx(6.0)
    assert find_makers(segments, Window(0, 1)) == []
