"""When the recorder looks who writes to a file system that fills up."""

from __future__ import annotations

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.disk_writers import DiskWriters
from nodescope.sources.limits.reading import Limit


def disk(percent: float) -> Limit:
    return Limit("disk", "/data", round(percent * 10), 1000)


def look(writers: DiskWriters, second: int, percent: float, *, full: bool = False) -> bool:
    """Ask at a time, and take the look if it is due, at a cost of 10 ms."""
    due = writers.is_due(second * SECOND_NS, disk(percent), full=full)
    if due:
        writers.looked(second * SECOND_NS, disk(percent), 10_000_000)
    return due


def test_a_file_system_is_looked_at_while_it_grows_and_when_it_is_full() -> None:
    writers = DiskWriters()
    seen = [look(writers, 10 * n, percent) for n, percent in enumerate((0, 40, 60, 61, 80, 80))]
    assert seen == [False, False, True, False, True, False]
    assert look(writers, 60, 80.1, full=True)


def test_what_is_nearly_full_is_looked_at_for_less() -> None:
    writers = DiskWriters()
    assert [look(writers, 10 * n, 91 + 0.6 * n) for n in range(3)] == [False, True, True]


def test_room_that_was_made_counts_as_growth_when_it_is_used_again() -> None:
    writers = DiskWriters()
    assert [look(writers, 10 * n, percent) for n, percent in enumerate((80, 60, 63))] == [
        False, False, True,
    ]  # fmt: skip


def test_a_dear_look_is_followed_by_a_long_rest() -> None:
    writers = DiskWriters()
    writers.looked(0, disk(50), 300_000_000)
    assert not writers.is_due(50 * SECOND_NS, disk(70), full=False)
    assert writers.is_due(50 * SECOND_NS, disk(70), full=True)
    assert writers.is_due(61 * SECOND_NS, disk(70), full=False)


def test_inodes_are_written_by_nobody_in_particular() -> None:
    assert not DiskWriters().is_due(0, Limit("inodes", "/", 99, 100), full=True)
