"""When the open segment is sealed."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.recorder import segment_length
from nodescope.recorder.options import RecorderOptions
from nodescope.recorder.recorder import Recorder
from nodescope.recorder.segment_length import FULL_BYTES, LONGEST_NS, SHORTEST_NS, SegmentLength


def sealed_after(length: SegmentLength, bytes_per_interval: int) -> int:
    """Return after how many intervals a segment that grows so fast is sealed."""
    for number in range(1, 100):
        if length.is_over(number * bytes_per_interval):
            length.restart()
            return number
    raise AssertionError("it is never sealed")


def test_a_given_length_is_kept_whatever_the_segment_holds() -> None:
    length = SegmentLength(30 * SECOND_NS)
    assert length.interval_ns == 30 * SECOND_NS
    assert [sealed_after(length, size) for size in (0, 1, FULL_BYTES)] == [1, 1, 1]


def test_a_large_node_seals_every_two_minutes() -> None:
    length = SegmentLength(None)
    assert length.interval_ns == SHORTEST_NS == 2 * MINUTE_NS
    assert [sealed_after(length, FULL_BYTES) for _ in range(3)] == [1, 1, 1]


def test_a_segment_that_holds_little_stays_open() -> None:
    length = SegmentLength(None)
    assert sealed_after(length, FULL_BYTES // 3 + 1) == 3


def test_no_segment_is_longer_than_ten_minutes() -> None:
    length = SegmentLength(None)
    assert [sealed_after(length, 0) for _ in range(2)] == [LONGEST_NS // SHORTEST_NS] * 2
    assert LONGEST_NS == 10 * MINUTE_NS


def test_a_segment_that_could_not_be_sealed_is_tried_again_at_once() -> None:
    length = SegmentLength(None)
    while not length.is_over(0):
        pass
    assert length.is_over(0)  # the disk was full: nothing was restarted


@pytest.mark.live
@pytest.mark.beside
def test_the_recorder_leaves_a_segment_open_that_holds_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_length, "SHORTEST_NS", SECOND_NS // 5)
    monkeypatch.setattr(segment_length, "LONGEST_NS", SECOND_NS)

    def count(name: str, full_bytes: int) -> int:
        monkeypatch.setattr(segment_length, "FULL_BYTES", full_bytes)
        options = RecorderOptions(
            tmp_path / name, duration_ns=21 * SECOND_NS // 10, flush_ns=SECOND_NS // 10
        )
        with ArchiveWriter.open(
            options.archive, node={"boot_id": "b"}, clock=SystemClock(), tick_ns=1000
        ) as writer:
            Recorder(options, writer).run()
        return len(Archive.open(options.archive).segments())

    little, much = count("little", 1 << 40), count("much", 1)
    assert 1 <= little <= 3
    assert much > little
