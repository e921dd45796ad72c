"""The archive in brief, and times on the wall."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nodescope.archive.gaps import NOT_RUNNING
from nodescope.archive.reader import Archive
from nodescope.archive.retention import Retention, freeze
from nodescope.archive.schema import ColumnData
from nodescope.archive.status import summarise
from nodescope.quantities import HOUR_NS, SECOND_NS

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Toolbox


def test_an_empty_archive_has_no_range(studio: Studio) -> None:
    studio.open().writer.close()
    summary = summarise(Archive.open(studio.root))
    assert (summary.from_ns, summary.to_ns, summary.samples) == (None, None, 0)
    assert summary.bytes_per_sample is None
    assert summary.recorder.cpu_ratio is None
    assert summary.recording is None


def test_bytes_are_all_the_bytes(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    for first in (0, 500):
        tape.append(tools.make_samples(first, 500))
        tape.beat(studio.clock)
        tape.seal()
    tape.writer.close()
    summary = summarise(Archive.open(studio.root))
    files = [path for path in studio.root.rglob("*") if path.is_file() and path.name != "lock"]
    assert summary.bytes == sum(path.stat().st_size for path in files)
    assert summary.samples == 1000
    assert summary.bytes_per_sample == summary.bytes / 1000
    assert summary.segments == 2
    assert summary.tables["samples"].rows == 1000


def test_cost_is_summed_over_runs_and_not_over_the_time_between(
    studio: Studio, tools: type[Toolbox]
) -> None:
    for _ in range(2):  # two runs of two segments of two heartbeats each
        tape = studio.open()
        cpu_ns = 0
        for _ in range(2):
            for _ in range(2):
                tape.beat(studio.clock, cpu_ns=cpu_ns, rss_bytes=50 + cpu_ns, late_ns=3)
                studio.clock.advance(10 * SECOND_NS)
                cpu_ns += SECOND_NS
            tape.seal()
        tape.writer.close()
        studio.clock.advance(HOUR_NS)
    summary = summarise(Archive.open(studio.root))
    # In each run three intervals of 10 s, with 1 s of CPU in each.
    assert summary.recorder.cpu_ns == 6 * SECOND_NS
    assert summary.recorder.cpu_ratio == pytest.approx(0.1)
    assert summary.recorder.rss_bytes == 50 + 3 * SECOND_NS
    assert summary.recorder.late_max_ns == 3
    (gap,) = summary.gaps
    assert (gap.source, gap.reason) == ("all", NOT_RUNNING)
    assert gap.to_ns - gap.from_ns == HOUR_NS + 10 * SECOND_NS


def test_what_is_frozen_and_to_which_size_the_rest_is_kept(studio: Studio) -> None:
    studio.retention = Retention(size_bytes=100_000)
    tape = studio.open()
    start = studio.clock.wall
    for _ in range(3):
        tape.beat(studio.clock)
        studio.clock.advance(10 * SECOND_NS)
        tape.beat(studio.clock)
        tape.seal()
        studio.clock.advance(SECOND_NS)
    tape.writer.close()
    freeze(studio.root, start + 12 * SECOND_NS, start + 13 * SECOND_NS, "why", 3)
    archive = Archive.open(studio.root)
    summary = summarise(archive)
    assert summary.retention_bytes == 100_000
    assert summary.frozen_bytes == archive.segments()[1].description.bytes


def test_lost_counts_once_across_segments_and_restarts(studio: Studio) -> None:
    for counters in ([[2, 3], [5, 5]], [[1, 4]]):
        tape = studio.open()
        for segment in counters:
            for lost in segment:
                tape.beat(studio.clock, lost=lost)
                studio.clock.advance(SECOND_NS)
            tape.seal()
        tape.writer.close()
    assert summarise(Archive.open(studio.root)).lost == 5 + 4


def test_the_open_segment_counts_and_its_recorder_is_named(
    studio: Studio, tools: type[Toolbox]
) -> None:
    tape = studio.open()
    tape.append(tools.make_samples(0, 100))
    tape.seal()
    tape.append(tools.make_samples(100, 50))
    tape.writer.flush()
    summary = summarise(Archive.open(studio.root))
    assert (summary.samples, summary.segments) == (150, 2)
    assert summary.recording is not None
    assert summary.recording.pid == os.getpid()
    files = [path for path in studio.root.rglob("*") if path.is_file() and path.name != "lock"]
    assert summary.bytes == sum(path.stat().st_size for path in files)
    tape.writer.close()


def test_gaps_damage_and_freezes_are_told(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    now = studio.clock.monotonic
    row: ColumnData = dict(from_ns=[now], to_ns=[now + 7], source=["cores"], cpu=[1], lost=[None])
    tape.writer.append("gaps", {**row, "reason": ["x" * 1000]})
    tape.beat(studio.clock)
    tape.seal()
    tape.append(tools.make_samples(0, 10))
    name = tape.seal().name
    tape.writer.close()
    (studio.root / "segments" / name / "segment.json").write_text("{}")
    frozen = freeze(studio.root, 1, 2, "why", 3)
    summary = summarise(Archive.open(studio.root))
    (gap,) = summary.gaps
    assert (gap.from_ns, gap.to_ns) == (studio.clock.wall, studio.clock.wall + 7)
    assert (gap.source, gap.cpu, gap.lost, gap.reason) == ("cores", 1, None, "x" * 1000)
    assert [name in error.path for error in summary.damaged] == [True]
    assert summary.frozen == (frozen,)


def test_a_step_of_the_wall_clock_moves_only_what_comes_after(studio: Studio) -> None:
    tape = studio.open()
    clock = studio.clock
    start = clock.monotonic
    old_offset = clock.wall - clock.monotonic
    for beat in range(6):
        if beat == 3:
            clock.wall -= HOUR_NS
        clock.wall += 1_000_000  # slewing
        tape.beat(clock)
        clock.advance(SECOND_NS)
    description = tape.seal()
    tape.writer.close()
    assert len(description.clock) == 2
    (segment,) = Archive.open(studio.root).segments()
    times = start + np.array([0, 2, 3, 5]) * SECOND_NS
    error = segment.wall_ns(times) - times - old_offset - np.array([0, 0, -HOUR_NS, -HOUR_NS])
    assert np.abs(error).max() < 10_000_000
    # Its range on the wall holds both sides of the step.
    walls = segment.wall_ns(times)
    assert segment.wall_from_ns <= walls.min()
    assert segment.wall_to_ns >= walls.max()


def test_order_is_by_sequence_when_the_wall_clock_goes_back(studio: Studio) -> None:
    tape = studio.open()
    for _ in range(3):
        tape.beat(studio.clock)
        tape.seal()
        studio.clock.wall -= HOUR_NS
    tape.writer.close()
    starts = [segment.wall_from_ns for segment in Archive.open(studio.root).segments()]
    assert starts == sorted(starts, reverse=True)
