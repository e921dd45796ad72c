from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.archive.layout import create_archive
from nodescope.archive.retention import freeze, read_frozen, unfreeze
from nodescope.clock import ClockPair
from nodescope.quantities import SECOND_NS
from nodescope.recorder.freeze import AROUND_NS, LONGEST_NS, MOST, Freezing
from nodescope.records.event import Event
from nodescope.records.event_details import FrozenDetails

WALL_NS = 1_800_000_000 * SECOND_NS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_archive(tmp_path / "archive", WALL_NS, {})
    return tmp_path / "archive"


def _reset(
    root: Path,
    second: int,
    *,
    now: int | None = None,
    started: int = 0,
    recorded_to: int | None = None,
) -> list[Event]:
    """A reset at that second of the monotonic clock, which started with `WALL_NS`.

    `started` is when the recorder did, `recorded_to` when the one before it ended.
    """
    time_ns = second * SECOND_NS
    now_ns = time_ns if now is None else now * SECOND_NS
    before_ns = None if recorded_to is None else recorded_to * SECOND_NS
    freezing = Freezing(root, started * SECOND_NS, before_ns)
    pair = ClockPair(now_ns, WALL_NS + now_ns)
    return freezing.freeze([Event(time_ns, "nic_reset", "eth0", "reset")], pair)


def test_ten_minutes_around_it_are_kept_and_it_is_told(root: Path) -> None:
    (told,) = _reset(root, 10_000)
    (frozen,) = read_frozen(root)
    middle = WALL_NS + 10_000 * SECOND_NS
    assert (frozen.from_ns, frozen.to_ns) == (middle - AROUND_NS, middle + AROUND_NS)
    assert frozen.reason == "nic_reset on eth0: reset"
    assert (told.kind, told.subject) == ("frozen", frozen.id)
    assert told.get(FrozenDetails).kind == "nic_reset"


def test_what_overlaps_becomes_one(root: Path) -> None:
    _reset(root, 10_000)
    assert _reset(root, 10_100) == []
    (frozen,) = read_frozen(root)
    assert frozen.from_ns == WALL_NS + 10_000 * SECOND_NS - AROUND_NS
    assert frozen.to_ns >= WALL_NS + 10_100 * SECOND_NS + AROUND_NS


def test_a_storm_writes_once_a_minute_and_goes_on_in_the_next_range(root: Path) -> None:
    changes = set()
    told = 0
    for second in range(10_000, 13_600):
        told += len(_reset(root, second))
        changes.add(tuple(read_frozen(root)))
    ranges = read_frozen(root)
    assert told == len(ranges)
    assert all(each.to_ns - each.from_ns <= LONGEST_NS for each in ranges)
    for second in range(10_000, 13_600, 7):
        moment = WALL_NS + second * SECOND_NS
        assert any(each.from_ns <= moment <= each.to_ns for each in ranges)
    assert len(changes) < 100


def test_history_is_not_frozen(root: Path) -> None:
    assert _reset(root, 10_000, now=10_000 + 601) == []
    assert read_frozen(root) == []


def test_history_from_before_the_recorder_is_not_frozen(root: Path) -> None:
    assert _reset(root, 9_990, now=10_001, started=10_000) == []
    # The recorder before it had ended long before: nothing surrounds the event.
    assert _reset(root, 9_990, now=10_001, started=10_000, recorded_to=9_600) == []
    assert read_frozen(root) == []
    assert len(_reset(root, 10_000, now=10_001, started=10_000)) == 1


def test_what_happened_while_the_recorder_was_started_again_is_frozen(root: Path) -> None:
    assert len(_reset(root, 9_990, now=10_001, started=10_000, recorded_to=9_900)) == 1


def test_at_most_so_many_and_those_of_people_are_never_touched(root: Path) -> None:
    mine = freeze(root, WALL_NS, WALL_NS + 1, "mine", WALL_NS)
    for number in range(MOST + 3):
        _reset(root, 10_000 + number * 3600)
    kept = read_frozen(root)
    assert mine in kept
    own = [each for each in kept if each != mine]
    assert len(own) == MOST
    assert min(each.from_ns for each in own) > WALL_NS + (10_000 + 2 * 3600) * SECOND_NS


def test_what_a_person_let_go_is_frozen_again_only_by_a_new_event(root: Path) -> None:
    _reset(root, 10_000)
    unfreeze(root, read_frozen(root)[0].id)
    assert len(_reset(root, 10_001)) == 1
