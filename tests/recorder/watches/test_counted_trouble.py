from __future__ import annotations

import pytest

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.counted_trouble import CountedTrouble
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.event import Event
from nodescope.records.trouble_details import StorageDetails


class Counter:
    """One counter read every ten seconds."""

    def __init__(self, *, log: bool = True) -> None:
        self.reports = LogReports()
        if log:
            self.reports.note_read(0)
        self.trouble = CountedTrouble(self.reports)
        self.now_ns = 0

    def read(self, value: int, *, new: bool = False, seconds: int = 10) -> list[Event]:
        self.now_ns += seconds * SECOND_NS
        rise = self.trouble.follow(self.now_ns, "fs_error", "ext4_errors", "sda1", value, new=new)
        if rise is not None:
            self.trouble.report_rise(self.now_ns, rise, {"device": "sda1"})
        return self.trouble.take(self.now_ns)

    def log(self, device: str, kind: str = "fs_error") -> None:
        self.reports.tell(self.now_ns, kind, (device,))


def test_a_rise_is_an_event_once_the_log_was_read_again() -> None:
    counter = Counter()
    assert counter.read(3) == []
    assert counter.read(5) == []
    (event,) = counter.read(5)
    assert (event.kind, event.subject, event.time_ns) == ("fs_error", "sda1", 20 * SECOND_NS)
    assert "not in the kernel's log" in event.message
    assert event.details == StorageDetails(
        statistic="ext4_errors",
        before=3,
        value=5,
        within_s=10.0,
        known_from="counters",
        device="sda1",
    )


def test_without_a_log_it_is_one_at_once() -> None:
    counter = Counter(log=False)
    counter.read(3)
    (event,) = counter.read(5)
    assert "log is not read" in event.message


@pytest.mark.parametrize("late", [False, True])
def test_what_the_log_reports_is_not_reported_twice(late: bool) -> None:
    counter = Counter()
    counter.read(3)
    if not late:
        counter.log("sda1")
    counter.read(5)
    if late:
        counter.log("sda1")
    assert counter.read(5) == []


@pytest.mark.parametrize(("device", "kind"), [("sdb1", "fs_error"), ("sda1", "fs_readonly")])
def test_what_the_log_reports_of_something_else_does_not_count(device: str, kind: str) -> None:
    counter = Counter()
    counter.read(3)
    counter.log(device, kind)
    counter.read(5)
    assert len(counter.read(5)) == 1


def test_a_line_of_long_ago_does_not_explain_a_rise() -> None:
    counter = Counter()
    counter.log("sda1")
    counter.read(3, seconds=60)
    counter.read(5)
    assert len(counter.read(5)) == 1


def test_a_counter_that_goes_on_rising_is_one_event_until_it_rested() -> None:
    counter = Counter(log=False)
    counter.read(0)
    assert [len(counter.read(value)) for value in range(1, 20)] == [1] + [0] * 18
    assert counter.read(19, seconds=70) == []
    assert len(counter.read(20)) == 1


def test_one_that_is_new_began_at_zero_and_one_that_fell_began_anew() -> None:
    counter = Counter(log=False)
    (event,) = counter.read(4, new=True)
    assert event.get(StorageDetails).before == 0
    (again,) = counter.read(2, seconds=100)
    assert (again.get(StorageDetails).before, again.get(StorageDetails).value) == (0, 2)
    counter.trouble.forget(["sda1"])
    assert counter.read(9) == []


def test_a_level_passes_once_until_it_is_cleared() -> None:
    trouble = CountedTrouble(LogReports())

    def passes(share: float) -> bool:
        return trouble.passes("files_exhausted", "node", above=share >= 0.95, cleared=share < 0.9)

    shares = (0.5, 0.96, 0.99, 0.93, 0.97, 0.89, 0.96)
    assert [passes(share) for share in shares] == [False, True, False, False, False, False, True]
