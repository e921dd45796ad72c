"""Units that log of ends of what they started, from lines that a list tells."""

from __future__ import annotations

import pytest

from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.unit_lines import UnitLines
from nodescope.records.event import Event
from nodescope.records.event_details import UnitLinesDetails
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.trouble_details import ServiceReportDetails
from nodescope.sources.places import Places
from nodescope.sources.systemd.journal import JournalMessage, Most, Wanted

_ENDED = "Agent exited with code 1"


class Node:
    """A node whose units log what we want."""

    def __init__(self) -> None:
        self.now_s = 1000
        self._waiting: list[JournalMessage] = []
        self.observer = UnitLines(Places(), lambda _: self)

    def take_new(self, wanted: Wanted, most: Most | None = None) -> list[JournalMessage]:
        assert most is not None
        assert (most("agent.service"), most("kubelet.service")) == (100, 500)
        chosen = wanted["_SYSTEMD_UNIT"]
        assert callable(chosen)
        taken, self._waiting = self._waiting, []
        return [each for each in taken if chosen(each.fields["_SYSTEMD_UNIT"])]

    def close(self) -> None:
        pass

    def look(self, *lines: str, unit: str = "agent.service", after_s: int = 30) -> list[Event]:
        """What is told after a unit logged these lines."""
        self.now_s += after_s
        self._waiting = [
            JournalMessage(self.now_s * 1_000_000, 0, "", {"_SYSTEMD_UNIT": unit, "MESSAGE": line})
            for line in lines
        ]
        return self.observer.observe(self.now_s * SECOND_NS).events


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_unit_that_goes_on_logging_of_ends_is_told_of_with_its_lines(node: Node) -> None:
    assert node.look("Starting the agent", _ENDED, _ENDED) == []
    (found,) = node.look(f"Removing container ID: {'3f' * 32}", "Starting the agent", _ENDED)
    assert (found.kind, found.subject) == ("unit_logs_ends", "agent.service")
    assert found.message.endswith(f"3 times that something ended with an error: {_ENDED}")
    assert found.get(UnitLinesDetails).times == 3
    assert found.get(UnitLinesDetails).over_s == 30
    assert found.get(UnitLinesDetails).lines == (
        f"Removing container ID: {'3f' * 32}", "Starting the agent", _ENDED,
    )  # fmt: skip
    assert not EVENT_KINDS[found.kind].serious  # it may only watch


def test_what_the_kubelet_reports_of_itself_is_an_event(node: Node) -> None:
    line = 'E1117 kubelet.go:24] "Eviction manager: attempting to reclaim" resourceName="memory"'
    (found,) = node.look("I1117 nothing", line, unit="kubelet.service")
    assert (found.kind, found.subject) == ("eviction", "kubelet.service")
    assert found.time_ns == node.now_s * SECOND_NS
    assert node.look(line, line, unit="kubelet.service") == []
    (counted,) = node.look(unit="kubelet.service")
    assert counted.get(ServiceReportDetails).times == 2
    assert node.look("exited with code 1", "exited with code 1", unit="kubelet.service") == []


def test_it_is_told_again_while_it_goes_on_but_not_at_each_look(node: Node) -> None:
    node.look(_ENDED, _ENDED)
    assert node.look(_ENDED)
    assert [len(node.look(_ENDED)) for _ in range(8)] == [0, 0, 0, 1, 0, 0, 0, 1]
    assert node.look("all is well", after_s=600) == []


@pytest.mark.parametrize("line", ["Agent exited with code 0", "retrying in 5s", "code 1"])
def test_what_tells_of_no_failed_end_does_not_count(node: Node, line: str) -> None:
    assert not any(node.look(line, line) for _ in range(4))


def test_one_burst_is_no_loop(node: Node) -> None:
    assert node.look(*[_ENDED] * 50) == []
    assert node.look("all is well") == []
    assert node.look(_ENDED, after_s=1300) == []  # the burst was forgotten


def test_who_runs_what_others_want_is_not_listened_to(node: Node) -> None:
    for unit in ("docker.service", "kubelet.service", "session-3.scope"):
        assert not any(node.look(_ENDED, _ENDED, unit=unit) for _ in range(3))


def test_of_each_kind_of_line_the_latest_is_kept(node: Node) -> None:
    node.look(_ENDED, _ENDED)
    lines = [f"{'abcdefghijkl'[number]} said {time}" for time in range(9) for number in range(12)]
    (found,) = node.look(*lines, _ENDED)
    kept = found.get(UnitLinesDetails).lines or ()
    assert kept == (*(f"{letter} said 8" for letter in "fghijkl"), _ENDED)
    assert all(len(line) <= 200 for line in kept)
