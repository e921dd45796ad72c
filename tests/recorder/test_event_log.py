from __future__ import annotations

import pytest

from nodescope.recorder.event_log import EventLog
from nodescope.records.event import Event
from nodescope.records.event_details import MarkDetails, NicDetails
from nodescope.records.event_kinds import EVENT_KINDS


def test_rows_are_handed_out_once() -> None:
    log = EventLog(lambda message: None)
    log.gap(1, 2, "samples", "the ring was full", cpu=3, lost=17)
    log.event(5, "paused", "archive", "full")
    assert log.take_new_rows() == {
        "gaps": {
            "from_ns": [1], "to_ns": [2], "source": ["samples"], "cpu": [3], "lost": [17],
            "reason": ["the ring was full"],
        },
        "events": {
            "time_ns": [5], "kind": ["paused"], "subject": ["archive"], "message": ["full"],
            "cpu": [None], "details": [None],
        },
    }  # fmt: skip
    assert log.take_new_rows() == {}


def test_a_source_that_keeps_failing_is_one_gap() -> None:
    log = EventLog(lambda message: None)
    for second in range(10):
        log.gap(second, second + 1, "cores", "denied")
    gaps = log.take_new_rows()["gaps"]
    assert (gaps["from_ns"], gaps["to_ns"]) == ([0], [10])


def test_cores_that_keep_failing_side_by_side_are_one_gap_each() -> None:
    log = EventLog(lambda message: None)
    for second in range(10):
        log.gap(second, second + 1, "samples", "the ring was full", cpu=0, lost=2)
        log.gap(second, second + 1, "samples", "the ring was full", cpu=1, lost=3)
    gaps = log.take_new_rows()["gaps"]
    assert (gaps["cpu"], gaps["lost"], gaps["to_ns"]) == ([0, 1], [20, 30], [10, 10])


def test_gaps_that_do_not_touch_stay_apart() -> None:
    log = EventLog(lambda message: None)
    log.gap(0, 1, "cores", "denied")
    log.gap(5, 6, "cores", "denied")
    log.gap(6, 7, "cores", "absent")
    assert len(log.take_new_rows()["gaps"]["reason"]) == 3


def test_a_message_is_said_once() -> None:
    said: list[str] = []
    log = EventLog(said.append)
    log.event(1, "rate_lowered", "recorder", "slower", loud=True)
    log.event(2, "rate_lowered", "recorder", "slower", loud=True)
    log.event(3, "rate_raised", "recorder", "not said", loud=False)
    log.event(4, "cpu_online", "cpu3", "not said")
    assert said == ["recorder: slower"]


def test_what_is_reported_depends_on_the_kind() -> None:
    said: list[str] = []
    log = EventLog(said.append)
    for kind in EVENT_KINDS:
        log.event(1, kind, "it", kind)
    assert said == [f"it: {name}" for name, kind in EVENT_KINDS.items() if kind.loud]


def test_details_of_another_kind_are_a_defect() -> None:
    log = EventLog(lambda message: None)
    log.add(Event(1, "nic_reset", "eth0", "reset", details=NicDetails(driver="ena")))
    with pytest.raises(ValueError, match="not the details of nic_reset"):
        log.add(Event(1, "nic_reset", "eth0", "reset", details=MarkDetails(mark="a")))
