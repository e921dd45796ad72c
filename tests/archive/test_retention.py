"""What is kept and what goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nodescope.archive.layout import parse_sequence
from nodescope.archive.reader import Archive
from nodescope.archive.retention import (
    Frozen,
    Retention,
    freeze,
    read_frozen,
    unfreeze,
    write_frozen,
)
from nodescope.errors import ArchiveError, UsageError
from nodescope.quantities import MINUTE_NS

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Tape


def _record(studio: Studio, tape: Tape, segments: int) -> None:
    """Two-minute segments with one heartbeat at each end."""
    for _ in range(segments):
        tape.beat(studio.clock)
        studio.clock.advance(2 * MINUTE_NS)
        tape.beat(studio.clock)
        tape.seal()


def _kept(studio: Studio) -> list[int]:
    return [parse_sequence(s.name) or 0 for s in Archive.open(studio.root).segments()]


def test_segments_older_than_the_age_go_oldest_first(studio: Studio) -> None:
    studio.retention = Retention(age_ns=10 * MINUTE_NS)
    tape = studio.open()
    _record(studio, tape, 9)
    # Ended 0, 2, … 16 minutes ago.
    assert _kept(studio) == [4, 5, 6, 7, 8, 9]
    studio.clock.advance(7 * MINUTE_NS)
    assert [parse_sequence(name) for name in tape.writer.apply_retention()] == [4, 5, 6, 7]
    tape.writer.close()
    assert _kept(studio) == [8, 9]


def test_size_takes_the_oldest(studio: Studio) -> None:
    tape = studio.open()
    _record(studio, tape, 6)
    tape.writer.close()
    each = [segment.description.bytes for segment in Archive.open(studio.root).segments()]
    studio.retention = Retention(size_bytes=sum(each[-3:]))
    studio.open().writer.close()
    assert _kept(studio) == [4, 5, 6]


def test_frozen_ranges_survive_age_and_size(studio: Studio) -> None:
    tape = studio.open()
    start = studio.clock.wall
    _record(studio, tape, 8)
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


def _freeze_around(studio: Studio, tape: Tape, name: str | None = None) -> Frozen:
    """Record a segment and freeze it: as a person does, or by the recorder under that name."""
    start = studio.clock.wall
    _record(studio, tape, 1)
    middle = start + MINUTE_NS
    if name is None:
        return freeze(studio.root, middle, middle, "mine", studio.clock.wall)
    frozen = Frozen(name, middle, middle, "the NIC reset", studio.clock.wall)
    write_frozen(studio.root, frozen)
    studio.clock.advance(MINUTE_NS)
    return frozen


def test_what_a_person_froze_takes_no_room_from_what_is_recorded(studio: Studio) -> None:
    tape = studio.open()
    for _ in range(3):
        _freeze_around(studio, tape)
        studio.clock.advance(MINUTE_NS)
    tape.writer.retention = _room_for(2, studio)  # less than is frozen
    _record(studio, tape, 4)
    assert _kept(studio) == [1, 2, 3, 6, 7]
    assert tape.writer.frozen_bytes > tape.writer.retention.size_bytes
    assert len(read_frozen(studio.root)) == 3
    tape.writer.close()


def _room_for(segments: int, studio: Studio) -> Retention:
    """A size that so many segments fit into, and not one more."""
    each = max(segment.description.bytes for segment in Archive.open(studio.root).segments())
    return Retention(size_bytes=each * segments * 11 // 10)


def test_the_newest_segment_is_never_too_much(studio: Studio) -> None:
    tape = studio.open()
    tape.writer.retention = Retention(size_bytes=1)
    for number in (1, 2, 3):
        _record(studio, tape, 1)
        assert _kept(studio) == [number]
    tape.writer.close()


def test_automatic_freezes_take_half_at_most_and_the_oldest_give_way(studio: Studio) -> None:
    tape = studio.open()
    frozen = [_freeze_around(studio, tape, f"auto-{number:04d}") for number in (1, 2, 3)]
    mine = _freeze_around(studio, tape)
    studio.clock.advance(MINUTE_NS)
    tape.writer.retention = _room_for(4, studio)
    _record(studio, tape, 5)
    # Two automatic ones, and as much again of what is new; a person's comes on top.
    assert read_frozen(studio.root) == [mine, *frozen[1:]]
    assert tape.writer.take_thawed() == frozen[:1]
    assert tape.writer.take_thawed() == []
    assert _kept(studio) == [2, 3, 4, 8, 9]
    tape.writer.close()


def test_automatic_freezes_alone_do_not_stop_the_recording(studio: Studio) -> None:
    tape = studio.open()
    for number in range(1, 6):
        _freeze_around(studio, tape, f"auto-{number:04d}")
    tape.writer.retention = _room_for(3, studio)
    _record(studio, tape, 4)
    assert _kept(studio) == [5, 8, 9]
    tape.writer.close()


def test_a_range_that_cannot_be_let_go_keeps_what_it_keeps(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = studio.open()
    frozen = _freeze_around(studio, tape, "auto-0001")
    tape.writer.retention = Retention(size_bytes=1)

    def refuse(path: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr("nodescope.archive.retention.os.unlink", refuse)
        assert tape.writer.apply_retention() == []
    assert tape.writer.take_thawed() == []
    assert read_frozen(studio.root) == [frozen]
    tape.writer.close()


def test_a_wall_clock_set_right_does_not_wipe_the_recording(studio: Studio) -> None:
    studio.clock.wall = 0  # a machine that boots in 1970
    tape = studio.open()
    _record(studio, tape, 3)
    studio.clock.wall += 1_700_000_000_000_000_000
    _record(studio, tape, 1)
    assert _kept(studio) == [1, 2, 3, 4]
    tape.writer.close()

    # After a reboot only the wall clock can tell, and says 1970 is long ago.
    studio.node = {"boot_id": "b2"}
    studio.clock.monotonic = 0
    studio.open().writer.close()
    assert _kept(studio) == [4]


def test_a_removed_number_is_not_given_again(studio: Studio) -> None:
    tape = studio.open()
    _record(studio, tape, 2)
    tape.writer.close()
    tape = studio.open()
    _record(studio, tape, 1)
    tape.writer.close()
    assert _kept(studio) == [1, 2, 3]


def test_freeze_names_what_it_cannot_do(studio: Studio) -> None:
    with pytest.raises(ArchiveError, match="no such archive"):
        freeze(studio.root, 0, 1, "x", 0)
    studio.open().writer.close()
    with pytest.raises(UsageError, match="ends before it starts") as reversed_ends:
        freeze(studio.root, 2, 1, "x", 0)
    assert reversed_ends.value.hint == "--from is the earlier end, --to the later one"
    first, second = (freeze(studio.root, 0, 1, reason, 5) for reason in "ab")
    assert first.id != second.id
    with pytest.raises(UsageError, match="nothing is frozen as '9999'") as caught:
        unfreeze(studio.root, "9999")
    assert caught.value.hint == f"frozen: {first.id}, {second.id}"
    with pytest.raises(UsageError):
        unfreeze(studio.root, "../archive")
    assert (studio.root / "archive.json").exists()


def test_an_unreadable_freeze_stops_removal(studio: Studio) -> None:
    tape = studio.open()
    _record(studio, tape, 2)
    (studio.root / "frozen" / "0001.json").write_text('{"from_ns": "yesterday"}')
    tape.writer.retention = Retention(size_bytes=0)
    assert tape.writer.apply_retention() == []
    tape.writer.close()
    assert _kept(studio) == [1, 2]
    with pytest.raises(ArchiveError, match=r"frozen/0001\.json"):
        read_frozen(studio.root)
