from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.pegged_cores import CoreWatch
from nodescope.records.event import Event
from nodescope.records.event_details import PeggedCoreDetails
from nodescope.records.recorder_tables import CORE_STATES


class Node:
    """Two cores; each second is said by what each of them did in it."""

    def __init__(self, proc: Path) -> None:
        self.watch = CoreWatch(proc)
        self.now = 100
        self.ticks = np.zeros((2, 1 + len(CORE_STATES)), np.int64)
        self.ticks[:, 0] = (0, 1)
        self.watch.read(self.now * SECOND_NS, self.ticks.copy())

    def second(self, **states: int) -> None:
        """Core 1 did this; core 0 was idle."""
        self.now += 1
        self.ticks[0, 1 + CORE_STATES.index("idle")] += 100
        for state, count in states.items():
            self.ticks[1, 1 + CORE_STATES.index(state)] += count
        self.watch.read(self.now * SECOND_NS, self.ticks.copy())

    def events(self) -> list[Event]:
        return self.watch.take_events()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_three_seconds_in_the_kernel_are_told_once_with_their_length(node: Node) -> None:
    node.second(user=100)
    for _ in range(4):
        node.second(system=50, softirq=46, irq=1, user=3)
    assert node.events() == []  # not over yet
    node.second(user=100)
    (event,) = node.events()
    assert (event.kind, event.cpu, event.subject) == ("core_held", 1, "cpu1")
    assert event.time_ns == 101 * SECOND_NS
    assert event.message == "97% in the kernel for 4 s"
    assert event.get(PeggedCoreDetails).seconds == 4.0
    assert event.get(PeggedCoreDetails).share == 0.97
    assert event.get(PeggedCoreDetails).ongoing is False
    node.second(user=100)
    assert node.events() == []


def test_a_second_is_not_and_neither_is_a_core_that_others_get_much_of(node: Node) -> None:
    for _ in range(5):
        node.second(system=100)
        node.second(system=75, user=25)
    for _ in range(5):
        node.second(system=85, user=15)
    node.second(idle=100)
    assert node.events() == []


def test_a_long_one_is_told_while_it_lasts_and_when_it_is_over(node: Node) -> None:
    told = []
    for _ in range(30):
        node.second(system=100)
        told += node.events()
    (event,) = told
    assert event.get(PeggedCoreDetails).ongoing is True
    node.second(idle=100)
    (last,) = node.events()
    assert last.get(PeggedCoreDetails).seconds == 30.0
    assert last.time_ns == event.time_ns


def test_what_the_hypervisor_took_counts_for_nobody(node: Node) -> None:
    for _ in range(3):
        node.second(system=40, steal=60)
    node.second(idle=100)
    assert len(node.events()) == 1


def test_a_core_that_counts_nothing_is_not_held(node: Node) -> None:
    for _ in range(5):
        node.second()
    node.watch.end()
    assert node.events() == []


def test_an_end_of_the_recording_ends_it(node: Node) -> None:
    for _ in range(3):
        node.second(system=100)
    node.watch.end()
    assert len(node.events()) == 1


def test_a_hole_in_the_readings_begins_anew(node: Node) -> None:
    node.second(system=100)
    node.watch.forget()
    for _ in range(2):
        node.second(system=100)
    node.watch.end()
    assert node.events() == []


def _samples(cpu: list[int], tid: list[int], time_ns: int) -> Any:
    def column(values: list[int]) -> npt.NDArray[np.int64]:
        return np.array(values, np.int64)

    return SimpleNamespace(
        cpu=column(cpu),
        tid=column(tid),
        time_ns=column([time_ns] * len(cpu)),
        kernel_mode=np.ones(len(cpu), bool),
    )


def test_who_holds_it_is_named_from_the_samples(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (tmp_path / "77").mkdir()
    (tmp_path / "77/comm").write_text("kworker/1:2\n")
    for _ in range(4):
        node.second(system=100)
    node.watch.see(_samples([1, 1, 1, 1, 0, 0], [77, 77, 77, 5, 9, 9], 102 * SECOND_NS))
    node.second(idle=100)
    (event,) = node.events()
    named = event.get(PeggedCoreDetails)
    assert (named.comm, named.thread) == ("kworker/1:2", 77)
    assert event.get(PeggedCoreDetails).thread_share == 0.75
    assert "by kworker/1:2 (77)" in event.message


def test_cores_that_come_and_go_do_not_confuse_it(node: Node) -> None:
    for _ in range(4):
        node.second(system=100)
    node.watch.read((node.now + 1) * SECOND_NS, node.ticks[:1].copy())
    assert len(node.events()) == 1
