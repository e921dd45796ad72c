"""The schedule of observers, with observers and a clock made by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from tests.waiting import wait_for

from nodescope.errors import SourceAbsent, SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.event_log import EventLog
from nodescope.recorder.observer_schedule import Observing
from nodescope.records.columns import Columns
from nodescope.records.event import Event
from nodescope.records.event_details import MarkDetails
from nodescope.records.node_tables import MemoryRow, PressureRow

BUDGET = 0.01


class HandClock:
    def __init__(self) -> None:
        self.now_ns = 1000 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns


class HandObserver:
    """Answers as it is told to; notes when it was asked."""

    def __init__(self, seconds: int = 1, *, patient: bool = False) -> None:
        self.interval_ns = seconds * SECOND_NS
        self.patient = patient
        self.asked: list[int] = []
        self.begun: list[int] = []  # how often it had been asked when a segment began
        self.error: Exception | None = None
        self.answer: Callable[[], Observation] = Observation
        self.closed = 0

    def begin_segment(self) -> None:
        self.begun.append(len(self.asked))

    def observe(self, now_ns: int) -> Observation:
        self.asked.append(now_ns // SECOND_NS - 1000)
        if self.error is not None:
            raise self.error
        return self.answer()

    def close(self) -> None:
        self.closed += 1


class Bench:
    """A schedule and what it logged."""

    def __init__(self, **observers: HandObserver) -> None:
        self.clock = HandClock()
        self.log = EventLog(lambda message: None)
        self.observing = Observing(observers, self.log, self.clock)
        self.rows: dict[str, Columns] = {}
        self.logged: dict[str, list[dict[str, Any]]] = {"gaps": [], "events": []}

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            now = self.clock.now_ns
            self.observing.work(now, now, BUDGET)
            self.clock.now_ns += SECOND_NS
        self.take()

    def take(self) -> None:
        for table, columns in self.observing.take_rows().items():
            known = self.rows.setdefault(table, {})
            for name, values in columns.items():
                known.setdefault(name, []).extend(values)
        for table, logged in self.log.take_new_rows().items():
            names = list(logged)
            for row in zip(*logged.values(), strict=True):
                self.logged[table].append(dict(zip(names, row, strict=True)))

    def close(self) -> None:
        self.observing.close(self.clock.now_ns)
        self.take()

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.logged["events"]]


def test_each_is_asked_in_its_own_time() -> None:
    quick, slow = HandObserver(1), HandObserver(3)
    bench = Bench(quick=quick, slow=slow)
    bench.run(7)
    assert quick.asked == [0, 1, 2, 3, 4, 5, 6]
    assert slow.asked == [0, 3, 6]
    assert bench.observing.due_ns == 1007 * SECOND_NS
    bench.close()
    assert (quick.closed, slow.closed) == (1, 1)


def test_one_that_answered_meanwhile_is_asked_in_the_same_round_as_all_others() -> None:
    patient = HandObserver(1, patient=True)
    bench = Bench(patient=patient)
    for round_ in range(3):
        now = bench.clock.now_ns
        bench.observing.work(now, now, BUDGET)
        wait_for(lambda: bench.observing.answered, "it answered")
        assert patient.asked == list(range(round_ + 1))
        bench.clock.now_ns += SECOND_NS
    bench.close()


def test_without_observers_nothing_is_due() -> None:
    assert Bench().observing.due_ns is None


def test_after_a_pause_it_is_asked_once_and_keeps_its_grid() -> None:
    observer = HandObserver(2)
    bench = Bench(it=observer)
    bench.run(1)
    bench.clock.now_ns += 6 * SECOND_NS
    bench.run(4)
    assert observer.asked == [0, 7, 8, 10]


def test_rows_events_and_gaps_reach_the_archive() -> None:
    observer = HandObserver()

    def answer() -> Observation:
        said = Observation()
        said.add(MemoryRow(time_ns=1, name="a", value=2))
        said.events.append(Event(3, "mark", "node", "text", cpu=1, details=MarkDetails(mark="a")))
        said.add_gap(4, 5, "memory", "why", 6)
        return said

    observer.answer = answer
    bench = Bench(it=observer)
    bench.run(2)
    assert bench.rows["memory"] == {"time_ns": [1, 1], "name": ["a", "a"], "value": [2, 2]}
    assert bench.logged["events"][0]["details"] == '{"mark": "a"}'
    (gap,) = bench.logged["gaps"]  # they touch: what both lost adds up
    assert (gap["source"], gap["lost"]) == ("memory", 12)


def test_one_that_fails_is_a_gap_and_is_asked_less_and_less() -> None:
    failing, healthy = HandObserver(), HandObserver()
    failing.error = SourceError("/x", "broken")
    bench = Bench(failing=failing, healthy=healthy)
    bench.run(100)
    assert len(healthy.asked) == 100
    pauses = [after - before for before, after in pairwise(failing.asked)]
    assert len(failing.asked) < 12
    assert pauses == sorted(pauses)
    assert bench.kinds() == ["source_degraded"]  # told once
    assert bench.logged["gaps"] == []  # not over yet
    failing.error = None
    bench.run(200)
    (gap,) = bench.logged["gaps"]
    assert (gap["source"], gap["from_ns"]) == ("failing", 1000 * SECOND_NS)
    assert "broken" in gap["reason"]
    assert len(failing.asked) > 12  # in its own time again


def test_one_that_still_fails_at_the_end_leaves_its_gap() -> None:
    observer = HandObserver()
    observer.error = SourceError("/x", "broken")
    bench = Bench(it=observer)
    bench.run(5)
    bench.close()
    (gap,) = bench.logged["gaps"]
    assert (gap["from_ns"], gap["to_ns"]) == (1000 * SECOND_NS, 1005 * SECOND_NS)


def test_what_is_not_on_this_node_is_no_gap_and_is_asked_rarely() -> None:
    observer = HandObserver()
    observer.error = SourceAbsent("/x", "none")
    bench = Bench(it=observer)
    bench.run(61)
    assert observer.asked == [0, 30, 60]
    bench.close()
    assert bench.logged == {"gaps": [], "events": []}


@pytest.mark.parametrize("wrong", ["exception", "kind"])
def test_a_defect_of_one_is_not_the_recorder_s(wrong: str) -> None:
    observer, other = HandObserver(), HandObserver()
    if wrong == "exception":
        observer.error = ZeroDivisionError("oops")
    else:
        observer.answer = lambda: Observation(events=[Event(1, "no such kind", "x", "y")])
    bench = Bench(it=observer, other=other)
    bench.run(3)
    assert other.asked == [0, 1, 2]
    (event,) = bench.logged["events"]
    assert (event["kind"], event["subject"]) == ("source_degraded", "it")
    assert "a defect of ours" in event["message"]


def test_a_segment_is_begun_before_the_first_question_in_it() -> None:
    observer = HandObserver()
    bench = Bench(it=observer)
    bench.run(2)
    bench.observing.begin_segment()
    bench.run(2)
    assert observer.begun == [0, 2]


def test_one_that_takes_more_than_its_share_is_eased(monkeypatch: pytest.MonkeyPatch) -> None:
    used = [0]
    monkeypatch.setattr(time, "thread_time_ns", lambda: used[0])
    costly, cheap = HandObserver(), HandObserver()

    def burn() -> Observation:
        used[0] += SECOND_NS // 100  # one per cent of a core, asked each second
        return Observation()

    costly.answer = burn
    bench = Bench(costly=costly, cheap=cheap)
    bench.run(400)
    assert set(bench.kinds()) == {"source_eased"}
    assert {event["subject"] for event in bench.logged["events"]} == {"costly"}
    assert len(cheap.asked) == 400
    late = [after - before for before, after in pairwise(costly.asked)][-3:]
    assert min(late) == max(late) == 4  # a quarter of one per cent: within its share
    costs = bench.rows["source_costs"]
    assert set(costs["source"]) == {"costly", "cheap"}
    assert set(costs["interval_ns"]) == {SECOND_NS, 2 * SECOND_NS, 4 * SECOND_NS}


def test_one_that_waits_holds_up_nobody() -> None:
    patient, quick = HandObserver(patient=True), HandObserver()
    go, inside = threading.Event(), threading.Event()

    def wait() -> Observation:
        inside.set()
        assert go.wait(60)
        said = Observation()
        said.add(MemoryRow(time_ns=1, name="late", value=1))
        return said

    patient.answer = wait
    bench = Bench(patient=patient, quick=quick)
    bench.run(3)
    assert inside.wait(60)
    bench.run(2)
    assert quick.asked == [0, 1, 2, 3, 4]
    assert patient.asked == [0]  # one question at a time
    assert bench.rows == {}
    go.set()

    def answered() -> bool:
        bench.take()
        return "memory" in bench.rows

    wait_for(answered, "the answer of the patient one")
    bench.run(1)
    wait_for(lambda: len(patient.asked) == 2, "the next question")
    bench.close()
    assert patient.closed == 1


def test_one_that_gets_no_answer_is_reported_and_leaves_a_gap() -> None:
    stuck = HandObserver(10, patient=True)
    go, inside = threading.Event(), threading.Event()

    def wait() -> Observation:
        inside.set()
        assert go.wait(60)
        return Observation([PressureRow(time_ns=7, cgroup="", resource="cpu")])

    stuck.answer = wait
    bench = Bench(stuck=stuck)
    bench.run(1)
    assert inside.wait(60)
    bench.run(58)
    assert bench.kinds() == []
    bench.run(40)
    (event,) = bench.logged["events"]
    assert event["kind"] == "source_degraded"
    assert event["subject"] == "stuck"
    assert "does not answer" in event["message"]
    go.set()
    wait_for(lambda: _answers(bench) == 1, "the answer")
    bench.close()
    (gap,) = bench.logged["gaps"]
    assert gap["source"] == "stuck"
    assert gap["to_ns"] > gap["from_ns"] == event["time_ns"] - 60 * SECOND_NS


def test_what_there_was_no_room_for_is_dropped() -> None:
    observer = HandObserver()

    def answer() -> Observation:
        said = Observation()
        said.add(MemoryRow(time_ns=1, name="a", value=1))
        return said

    observer.answer = answer
    bench = Bench(it=observer)
    now = bench.clock.now_ns
    bench.observing.work(now, now, BUDGET)
    bench.observing.forget()
    assert bench.observing.take_rows() == {}


# -- the end ---------------------------------------------------------------


def _answers(bench: Bench) -> int:
    bench.take()
    return len(bench.rows.get("pressure", {}).get("time_ns", []))


def test_at_the_end_each_is_asked_once_more() -> None:
    slow, patient = HandObserver(10), HandObserver(10, patient=True)
    for observer in (slow, patient):
        observer.answer = lambda: Observation([PressureRow(time_ns=7, cgroup="", resource="cpu")])
    bench = Bench(slow=slow, patient=patient)
    bench.run(1)
    wait_for(lambda: _answers(bench) == 2, "the patient one has answered")
    bench.clock.now_ns += 6 * SECOND_NS
    bench.close()
    assert slow.asked == patient.asked == [0, 7]
    assert bench.rows["pressure"]["time_ns"] == [7] * 4
    assert (slow.closed, patient.closed) == (1, 1)


def test_one_that_was_just_asked_is_not_asked_again() -> None:
    observer = HandObserver(1)
    bench = Bench(it=observer)
    bench.run(1)
    bench.clock.now_ns -= SECOND_NS * 3 // 4
    bench.close()
    assert observer.asked == [0]


def test_one_that_fails_or_is_absent_is_not_asked_at_the_end() -> None:
    failing, absent = HandObserver(1), HandObserver(1)
    failing.error, absent.error = SourceError("/x", "broken"), SourceAbsent("/y", "not here")
    bench = Bench(failing=failing, absent=absent)
    bench.run(1)
    bench.clock.now_ns += 10 * SECOND_NS
    bench.close()
    assert failing.asked == absent.asked == [0]
    assert [gap["source"] for gap in bench.logged["gaps"]] == ["failing"]


def test_one_that_never_answers_does_not_hold_up_the_end() -> None:
    stuck = HandObserver(1, patient=True)
    let_go = threading.Event()

    def answer() -> Observation:
        let_go.wait()
        return Observation()

    stuck.answer = lambda: Observation([PressureRow(time_ns=7, cgroup="", resource="cpu")])
    bench = Bench(stuck=stuck)
    bench.run(1)
    wait_for(lambda: _answers(bench) == 1, "the first answer")
    stuck.answer = answer
    bench.clock.now_ns += 10 * SECOND_NS
    bench.close()  # comes back
    let_go.set()
    wait_for(lambda: stuck.closed == 1, "its thread ends when it is let go")
