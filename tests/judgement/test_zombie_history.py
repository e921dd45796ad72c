from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.judgement.zombie_history import read_history
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

START = 1_700_000_000 * SECOND_NS
MINUTES = 61


class HandClock:
    def __init__(self) -> None:
        self.now = 1_000 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.now

    def wall_ns(self) -> int:
        return START + self.now - 1_000 * SECOND_NS


def row(second: int, parent: str, **values: Any) -> dict[str, Any]:
    return {
        "time_ns": (1_000 + second) * SECOND_NS, "parent": parent, "pattern": "*", "maker": "runc",
        "maker_pid": None, "workload": None, "made": 0, "removed": 0, "released": 0,
        "attached": 0, "unreleased": 0, "way": "tracepoints",
    } | values  # fmt: skip


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """An hour in which every minute ten cgroups are removed and three are released."""
    clock = HandClock()
    node = {"name": "hand", "boot_id": "b"}
    with ArchiveWriter.open(tmp_path / "a", node=node, clock=clock, tick_ns=1000) as writer:
        for minute in range(MINUTES):
            at = clock.now
            looks = {"time_ns": at, "version": "v1", "tracked": 50 + 7 * minute, "visible": 50,
                     "dying": 7 * minute if minute != 5 else None, "walk_ns": None,
                     "walk_file": None}  # fmt: skip
            writer.append("memory_cgroups", {name: [value] for name, value in looks.items()})
            churn = row(0, "/pods", made=10, removed=10, released=3, unreleased=7 * minute)
            churn["time_ns"] = at
            writer.append("cgroup_churn", {name: [value] for name, value in churn.items()})
            beat = {"time_ns": at, "wall_ns": clock.wall_ns(), "cpu_ns": 0, "rss_bytes": 0,
                    "written_bytes": 0, "samples": 0, "lost": 0, "late_ns": 0,
                    "frequency_hz": 97}  # fmt: skip
            writer.append("heartbeats", {name: [value] for name, value in beat.items()})
            clock.now += 60 * SECOND_NS
            if minute % 20 == 19:
                writer.seal_segment()
        writer.seal_segment()
    return Archive.open(tmp_path / "a")


def test_an_hour_of_growth_is_a_leak(archive: Archive) -> None:
    window = Window(START, START + MINUTES * 60 * SECOND_NS)
    history = read_history(Recording(archive.segments()), window)
    assert len(history.dying) == MINUTES - 1  # one look did not know
    assert history.trend is not None
    assert history.trend.per_hour == pytest.approx(420)
    assert (history.removed, history.unreleased) == (610, 420)
    assert history.nature == "leak"


def test_only_the_window_counts(archive: Archive) -> None:
    history = read_history(
        Recording(archive.segments()), Window(START + 600 * SECOND_NS, START + 1200 * SECOND_NS)
    )
    assert history.dying == [7 * minute for minute in range(10, 20)]
    assert history.nature == "unknown"  # ten minutes prove nothing
    empty = read_history(Recording(archive.segments()), Window(0, 1))
    assert (empty.trend, empty.nature, empty.removed) == (None, "unknown", 0)
