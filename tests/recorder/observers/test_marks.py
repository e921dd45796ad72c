from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.archive.marks import list_marks, write_mark
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.ingest.event_rows import event_rows
from nodescope.recorder.mark import make_mark
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import marks
from nodescope.records.columns import columns_by_table
from nodescope.records.event import Event
from nodescope.sources.places import Places


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _record(tmp_path / "archive", [])
    return tmp_path / "archive"


def _record(root: Path, events: list[Event]) -> None:
    with ArchiveWriter.open(root, node={}, clock=SystemClock(), tick_ns=1000) as writer:
        for table, columns in columns_by_table(event_rows(events)).items():
            writer.append(table, columns)


def _observer(root: Path) -> marks.MarksObserver:
    return marks.make(Setting(Places(), root))


def test_a_mark_is_told_once_at_its_moment(root: Path) -> None:
    observer = _observer(root)
    assert observer.observe(0).empty
    mark = make_mark("rollout", "mark", "node", None)
    write_mark(root, mark)
    (event,) = observer.observe(0).events
    assert (event.kind, event.subject, event.message) == ("mark", "node", "rollout")
    assert event.time_ns == mark.monotonic_ns
    assert observer.observe(0).empty
    second = make_mark("exit 1", "job_failed", "train", None)
    write_mark(root, second)
    assert [event.kind for event in observer.observe(0).events] == ["job_failed"]


def test_another_moment_is_placed_by_the_wall_clock(root: Path) -> None:
    hour = 3_600_000_000_000
    now = make_mark("now", "mark", "node", None)
    write_mark(root, make_mark("then", "mark", "node", now.wall_ns - hour))
    (event,) = _observer(root).observe(0).events
    assert now.monotonic_ns is not None
    # A wall clock that is being set right may move while we look, by less than this.
    assert abs(event.time_ns - (now.monotonic_ns - hour)) < 1_000_000_000


def test_its_file_goes_when_its_segment_is_sealed(root: Path) -> None:
    observer = _observer(root)
    observer.begin_segment()
    write_mark(root, make_mark("one", "mark", "node", None))
    observer.observe(0)
    assert len(list_marks(root)) == 1
    observer.begin_segment()
    assert list_marks(root) == []
    assert observer.observe(0).empty


def test_a_recorder_that_was_killed_does_not_make_two_of_one(root: Path) -> None:
    write_mark(root, make_mark("told", "mark", "node", None))
    told = _observer(root).observe(0).events
    _record(root, told)
    write_mark(root, make_mark("not yet", "mark", "node", None))
    again = _observer(root)
    assert [event.message for event in again.observe(0).events] == ["not yet"]
    again.begin_segment()
    assert list_marks(root) == []


def test_what_is_no_mark_is_told_once_and_hinders_nobody(root: Path) -> None:
    observer = _observer(root)
    write_mark(root, make_mark("good", "mark", "node", None))
    (root / "marks/0.json").write_text("{}")
    kinds = [event.kind for event in observer.observe(0).events]
    assert sorted(kinds) == ["mark", "source_degraded"]
    assert observer.observe(0).empty
