"""Gaps that touch, and the time between two runs: told once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nodescope.archive.gaps import NOT_RUNNING, find_gaps, merge_gaps
from nodescope.archive.reader import Archive
from nodescope.archive.status import summarise
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import Gap

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Tape


def gap(from_ns: int, to_ns: int, cpu: int | None = None, lost: int | None = None) -> Gap:
    return Gap(from_ns=from_ns, to_ns=to_ns, source="samples", cpu=cpu, lost=lost, reason="why")


def test_what_touches_is_one_and_what_was_lost_adds_up() -> None:
    assert merge_gaps([gap(5, 9), gap(0, 5), gap(20, 30)]) == [gap(0, 9), gap(20, 30)]
    assert merge_gaps([gap(0, 5, lost=2), gap(4, 9, lost=3)]) == [gap(0, 9, lost=5)]
    assert merge_gaps([gap(0, 9), gap(2, 3)]) == [gap(0, 9)]
    assert merge_gaps([gap(0, 5), gap(7, 9)], slack_ns=2) == [gap(0, 9)]


def test_what_is_not_the_same_stays_apart() -> None:
    apart = [gap(0, 5, cpu=1), gap(0, 5, cpu=2), gap(5, 9), gap(5, 9, lost=1)]
    assert merge_gaps(apart) == apart
    others = [
        Gap(from_ns=0, to_ns=5, source="cores", reason="why"),
        Gap(from_ns=5, to_ns=9, source="cores", reason="other"),
    ]
    assert merge_gaps(others) == others


def _add(tape: Tape, from_ns: int, to_ns: int, source: str, reason: str, **changes: Any) -> None:
    row = {"from_ns": from_ns, "to_ns": to_ns, "source": source, "cpu": None, "lost": None,
           "reason": reason} | changes  # fmt: skip
    tape.writer.append("gaps", {name: [value] for name, value in row.items()})


def test_a_core_that_is_never_sampled_is_one_gap_over_flushes_and_segments(
    studio: Studio,
) -> None:
    tape, start = studio.open(), studio.clock.wall
    for _ in range(3):
        tape.beat(studio.clock)
        for _ in range(30):  # more than a description lists
            before = studio.clock.monotonic
            studio.clock.advance(5 * SECOND_NS)
            _add(tape, before, studio.clock.monotonic, "samples", "denied", cpu=1)
            tape.writer.flush()
        tape.beat(studio.clock)
        tape.seal()
    tape.writer.close()
    archive = Archive.open(studio.root)
    assert [each.description.tables["gaps"].rows for each in archive.segments()] == [1, 1, 1]
    (only,) = summarise(archive).gaps
    assert (only.from_ns, only.to_ns) == (start, start + 450 * SECOND_NS)
    assert (only.source, only.cpu, only.reason) == ("samples", 1, "denied")


def test_the_open_segment_shows_it_as_one_too(studio: Studio) -> None:
    tape = studio.open()
    tape.beat(studio.clock)
    for _ in range(4):
        before = studio.clock.monotonic
        studio.clock.advance(SECOND_NS)
        _add(tape, before, studio.clock.monotonic, "samples", "denied")
        tape.writer.flush()
    (only,) = summarise(Archive.open(studio.root)).gaps
    assert only.to_ns - only.from_ns == 4 * SECOND_NS
    tape.writer.close()


def _two_runs(studio: Studio, *told: tuple[str, str]) -> tuple[int, int]:
    """Two runs with an hour between; what the second tells of it, by source. The hour."""
    tape = studio.open()
    tape.beat(studio.clock)
    tape.writer.close()
    ended, ended_wall = studio.clock.monotonic, studio.clock.wall
    studio.clock.advance(60 * MINUTE_NS)
    tape = studio.open()
    for source, reason in told:
        # The run begins a moment before its first row.
        _add(tape, ended, studio.clock.monotonic, source, reason)
    tape.beat(studio.clock)
    tape.writer.close()
    return ended_wall, studio.clock.wall


def _listed(studio: Studio) -> list[tuple[str, str, int, int]]:
    segments = Archive.open(studio.root).segments()
    return [(each.source, each.reason, each.from_ns, each.to_ns) for each in find_gaps(segments)]


def test_status_counts_the_gaps_that_a_description_has_no_room_for(studio: Studio) -> None:
    """`status` knew the first 16 of a segment, `quality` all."""
    tape = studio.open()
    tape.beat(studio.clock)
    for number in range(40):
        start = studio.clock.monotonic
        studio.clock.advance(SECOND_NS)
        _add(tape, start, studio.clock.monotonic, "kernel_log", f"reason {number}")
    tape.beat(studio.clock)
    tape.writer.close()
    archive = Archive.open(studio.root)
    extent = archive.segments()[0].description
    window = Window(extent.wall_from_ns, extent.wall_to_ns + 1)
    assert len(summarise(archive).gaps) == 40
    assert list(summarise(archive).gaps) == Recording(archive.segments()).gaps(window)


def test_an_interruption_that_nobody_told_is_derived(studio: Studio) -> None:
    hour = _two_runs(studio)
    assert _listed(studio) == [("all", NOT_RUNNING, *hour)]


def test_an_interruption_that_the_next_run_told_is_not_told_again(studio: Studio) -> None:
    hour = _two_runs(studio, ("all", "the recorder was not running and had been killed"))
    assert _listed(studio) == [("all", "the recorder was not running and had been killed", *hour)]


def test_the_time_between_two_imported_captures_is_told_once(studio: Studio) -> None:
    hour = _two_runs(studio, ("samples", "between two captures"))
    assert _listed(studio) == [("all", "between two captures", *hour)]


def test_another_gap_does_not_stand_for_it(studio: Studio) -> None:
    _two_runs(studio, ("cores", "denied"))
    assert [source for source, *_ in _listed(studio)] == ["cores", "all"]
