from __future__ import annotations

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.stalled_disks import Stalled, StalledDisks
from nodescope.sources.limits.disks import Disk


def _look(readings: list[tuple[int, int]]) -> list[tuple[int, Stalled]]:
    """Look every five seconds at requests that wait and that completed."""
    disks = StalledDisks()
    found = []
    for at, (waiting, completed) in enumerate(readings):
        stalled = disks.look(at * 5 * SECOND_NS, {"sda": Disk(waiting, completed)})
        found += [(at, each) for each in stalled]
    return found


def test_requests_that_wait_ten_seconds_and_none_completes() -> None:
    readings = [(0, 5), (3, 6), (4, 6), (4, 6), (4, 6), (4, 6)]
    assert _look(readings) == [(3, Stalled("sda", 4, 5 * SECOND_NS))]


def test_a_busy_disk_and_an_idle_one_do_not_stall() -> None:
    assert _look([(32, at) for at in range(50)]) == []
    assert _look([(0, 7)] * 50) == []
    assert _look([(at % 2, 7) for at in range(50)]) == []  # others came and went


def test_it_may_stall_again_after_it_moved() -> None:
    stall = [(1, 5)] * 4
    assert [at for at, _ in _look([*stall, (0, 6), *[(1, 6)] * 4])] == [2, 7]


def test_a_request_that_the_driver_forgot_to_count_down_does_not_wait() -> None:
    leaked = [(1, at) for at in range(70)]
    assert _look([*leaked, *[(1, 69)] * 20]) == []
    assert len(_look([*leaked, *[(2, 69)] * 20])) == 1
