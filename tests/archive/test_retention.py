"""What is kept and what goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nodescope.archive.layout import parse_sequence
from nodescope.archive.reader import Archive
from nodescope.archive.retention import Retention, freeze, read_frozen, unfreeze
from nodescope.errors import ArchiveError, UsageError

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Tape, Toolbox

MINUTE_NS = 60_000_000_000


def _record(studio: Studio, tools: type[Toolbox], tape: Tape, segments: int) -> None:
    """Two-minute segments with one heartbeat at each end."""
    for _ in range(segments):
        tape.beat(studio.clock)
        studio.clock.advance(2 * MINUTE_NS)
        tape.beat(studio.clock)
        tape.seal()


def _kept(studio: Studio) -> list[int]:
    return [parse_sequence(s.name) or 0 for s in Archive.open(studio.root).segments()]


def test_segments_older_than_the_age_go_oldest_first(studio: Studio, tools: type[Toolbox]) -> None:
    studio.retention = Retention(age_ns=10 * MINUTE_NS)
    tape = studio.open()
    _record(studio, tools, tape, 9)
    # Ended 0, 2, … 16 minutes ago.
    assert _kept(studio) == [4, 5, 6, 7, 8, 9]
    studio.clock.advance(7 * MINUTE_NS)
    assert [parse_sequence(name) for name in tape.writer.apply_retention()] == [4, 5, 6, 7]
    tape.writer.close()
    assert _kept(studio) == [8, 9]


def test_size_takes_the_oldest(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    _record(studio, tools, tape, 6)
    tape.writer.close()
    each = [segment.description.bytes for segment in Archive.open(studio.root).segments()]
    studio.retention = Retention(size_bytes=sum(each[-3:]))
    studio.open().writer.close()
    assert _kept(studio) == [4, 5, 6]


def test_frozen_ranges_survive_age_and_size(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    start = studio.clock.wall
    _record(studio, tools, tape, 8)
    inside = start + 7 * MINUTE_NS  # in the fourth segment
    frozen = freeze(studio.root, inside, inside + 1, "the NIC reset", studio.clock.wall)
    studio.clock.advance(24 * 60 * MINUTE_NS)
    tape.writer.retention = Retention(size_bytes=0)
    tape.writer.apply_retention()
    assert _kept(studio) == [4]
    assert read_frozen(studio.root) == [frozen]

    unfreeze(studio.root, frozen.id)
    tape.writer.apply_retention()
    assert _kept(studio) == []
    tape.writer.close()


def test_a_wall_clock_set_right_does_not_wipe_the_recording(
    studio: Studio, tools: type[Toolbox]
) -> None:
    studio.clock.wall = 0  # a machine that boots in 1970
    tape = studio.open()
    _record(studio, tools, tape, 3)
    studio.clock.wall += 1_700_000_000_000_000_000
    _record(studio, tools, tape, 1)
    assert _kept(studio) == [1, 2, 3, 4]
    tape.writer.close()

    # After a reboot only the wall clock can tell, and says 1970 is long ago.
    studio.node = {"boot_id": "b2"}
    studio.clock.monotonic = 0
    studio.open().writer.close()
    assert _kept(studio) == [4]


def test_a_removed_number_is_not_given_again(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    _record(studio, tools, tape, 2)
    tape.writer.close()
    tape = studio.open()
    _record(studio, tools, tape, 1)
    tape.writer.close()
    assert _kept(studio) == [1, 2, 3]


def test_freeze_names_what_it_cannot_do(studio: Studio) -> None:
    with pytest.raises(ArchiveError, match="no such archive"):
        freeze(studio.root, 0, 1, "x", 0)
    studio.open().writer.close()
    with pytest.raises(UsageError, match="ends before it starts"):
        freeze(studio.root, 2, 1, "x", 0)
    first, second = (freeze(studio.root, 0, 1, reason, 5) for reason in "ab")
    assert first.id != second.id
    with pytest.raises(UsageError, match="nothing is frozen as '9999'") as caught:
        unfreeze(studio.root, "9999")
    assert caught.value.hint == f"frozen: {first.id}, {second.id}"
    with pytest.raises(UsageError):
        unfreeze(studio.root, "../archive")
    assert (studio.root / "archive.json").exists()


def test_an_unreadable_freeze_stops_removal(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    _record(studio, tools, tape, 2)
    (studio.root / "frozen" / "0001.json").write_text('{"from_ns": "yesterday"}')
    tape.writer.retention = Retention(size_bytes=0)
    assert tape.writer.apply_retention() == []
    tape.writer.close()
    assert _kept(studio) == [1, 2]
    with pytest.raises(ArchiveError, match=r"frozen/0001\.json"):
        read_frozen(studio.root)
