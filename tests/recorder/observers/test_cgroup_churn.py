from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import pytest
from tests.waiting import wait_for

from nodescope.errors import SourceAbsent, SourceDenied
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.cgroup_churn import ChurnObserver
from nodescope.records.node_tables import CgroupChurnRow
from nodescope.sources.cgroups.churn import ChurnEvent, Kind, Watch
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places


class Heard:
    """A watch that says what it is told to."""

    way: Literal["tracepoints", "scan"] = "tracepoints"
    descriptors: Sequence[int] = ()

    def __init__(self) -> None:
        self.lost = 0
        self.pending: list[ChurnEvent] = []
        self.closed = False

    def say(self, kind: Kind, path: str, identity: int, at: int = 0) -> None:
        self.pending.append(ChurnEvent(at, kind, path, "memory", identity, 5, "runc"))

    def read(self) -> list[ChurnEvent]:
        events, self.pending = self.pending, []
        return events

    def close(self) -> None:
        self.closed = True


def _opening(watch: Heard) -> Callable[[Places], Watch]:
    return lambda places: watch


def _refuse(places: Places) -> Watch:
    raise SourceDenied("tracefs", "not permitted")


def test_rows_come_every_ten_seconds_and_only_of_what_happened() -> None:
    watch = Heard()
    observer = ChurnObserver(Places(), _opening(watch))
    observer.begin_segment()
    assert observer.observe(0).empty
    watch.say("made", "/docker/1", 1)
    watch.say("removed", "/docker/1", 1)
    watch.say("released", "/docker/1", 1)
    assert observer.observe(SECOND_NS).empty
    assert watch.pending == []  # taken out of the ring at once
    (row,) = observer.observe(10 * SECOND_NS).rows_of(CgroupChurnRow)
    assert row == CgroupChurnRow(
        time_ns=10 * SECOND_NS, parent="/docker", pattern="*", maker="runc", maker_pid=5,
        workload=None, made=1, removed=1, released=1, attached=0, unreleased=0, way="tracepoints",
    )  # fmt: skip
    assert observer.observe(20 * SECOND_NS).empty
    observer.close()
    assert watch.closed


def test_each_segment_says_again_what_is_unreleased() -> None:
    watch = Heard()
    observer = ChurnObserver(Places(), _opening(watch))
    observer.observe(0)
    watch.say("made", "/a/1", 1)
    watch.say("removed", "/a/1", 1)
    observer.observe(100 * SECOND_NS)
    assert observer.observe(110 * SECOND_NS).empty
    observer.begin_segment()
    (row,) = observer.observe(120 * SECOND_NS).rows_of(CgroupChurnRow)
    assert (row.made, row.unreleased) == (0, 1)


def test_what_the_ring_lost_is_a_gap() -> None:
    watch = Heard()
    observer = ChurnObserver(Places(), _opening(watch))
    observer.observe(0)
    watch.lost = 12
    (gap,) = observer.observe(10 * SECOND_NS).gaps
    assert (gap.from_ns, gap.to_ns, gap.lost) == (0, 10 * SECOND_NS, 12)
    assert observer.observe(20 * SECOND_NS).gaps == []


def test_without_tracepoints_directories_are_compared_every_half_minute(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    observer = ChurnObserver(Places(tmp_path), _refuse)
    (event,) = observer.observe(0).events
    assert event.kind == "source_degraded"
    assert "not permitted" in event.message
    (tmp_path / "sys/fs/cgroup/new").mkdir()
    assert observer.observe(10 * SECOND_NS).empty
    (row,) = observer.observe(30 * SECOND_NS).rows_of(CgroupChurnRow)
    assert (row.pattern, row.made, row.maker, row.way) == ("new", 1, None, "scan")
    assert row.unreleased is None


def test_without_cgroups_there_is_nothing_to_observe(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        ChurnObserver(Places(tmp_path), _refuse).observe(0)


@pytest.fixture
def parent() -> Iterator[Path]:
    """A cgroup of our own in the memory hierarchy; whatever is left in it goes with it."""
    hierarchy = next(each for each in read_hierarchies(Places()) if "memory" in each.controllers)
    folder = hierarchy.mount / f"nodescope-observed-{os.getpid()}"
    folder.mkdir()
    yield folder
    for child in folder.iterdir():
        if child.is_dir():
            child.rmdir()
    folder.rmdir()


@pytest.mark.root
@pytest.mark.live
def test_the_live_kernel_tells_the_maker_and_the_pattern(parent: Path) -> None:
    observer = ChurnObserver(Places())
    observer.observe(time.monotonic_ns())
    rows: list[CgroupChurnRow] = []
    later, number = 0, 0

    def told() -> bool:
        """Again and again, ten seconds later each time: an event may be lost."""
        nonlocal later, number
        later, number = later + 10 * SECOND_NS, number + 1
        folder = str(parent / f"job{number}")
        subprocess.run(["mkdir", folder], check=True)
        subprocess.run(["rmdir", folder], check=True)
        said = observer.observe(time.monotonic_ns() + later)
        rows.extend(
            row
            for row in said.rows_of(CgroupChurnRow)
            if (row.parent, row.maker) == (f"/{parent.name}", "mkdir")
        )
        totals = zip(*((row.made, row.removed, row.released) for row in rows), strict=True)
        return bool(rows) and all(sum(total) >= 3 for total in totals)

    try:
        wait_for(told, "three are made, removed and released")
    finally:
        observer.close()
    assert {(row.pattern, row.way) for row in rows} == {("job*", "tracepoints")}
