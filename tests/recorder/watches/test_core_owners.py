from __future__ import annotations

import struct

import numpy as np
import pytest

from nodescope.perf.decode import Chunk, split
from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.core_owners import CoreOwners
from nodescope.records.recorder_tables import CORE_STATES

HOG, OTHER = (70, 71), (80, 80)  # process and thread
HZ = 97


def _chunk(cpu: int, from_ns: int, tasks: list[tuple[int, int]]) -> Chunk:
    """One second of samples, as a ring has them."""
    records = b""
    for number, (pid, tid) in enumerate(tasks):
        time_ns = from_ns + number * SECOND_NS // len(tasks)
        records += struct.pack("<IHHIIQQ", 9, 1, 32, pid, tid, time_ns, 0)
        records += struct.pack("<IHHQQ", 2, 0, 24, 1, 1)  # a record of another kind
    return split(cpu, records)


class Node:
    """Two cores, second by second; core 0 is idle."""

    def __init__(self) -> None:
        self.owners = CoreOwners()
        self.now = 100
        self.ticks = np.zeros((2, 1 + len(CORE_STATES)), np.int64)
        self.ticks[:, 0] = (0, 1)
        self.owners.read(self.now * SECOND_NS, self.ticks.copy())

    def second(self, *tasks: tuple[int, int], **states: int) -> list[tuple[int, int, float]]:
        """Say what core 1 did and who was sampled there; return new owners and their time."""
        self.ticks[0, 1 + CORE_STATES.index("idle")] += 100
        for state, count in (states or {"user": 100}).items():
            self.ticks[1, 1 + CORE_STATES.index(state)] += count
        began = self.now * SECOND_NS
        self.now += 1
        self.owners.read(self.now * SECOND_NS, self.ticks.copy())
        sampled = list(tasks) * (HZ // max(1, len(tasks)))
        chunks = [_chunk(0, began, [OTHER] * 20), _chunk(1, began, sampled)]
        self.owners.see(self.now * SECOND_NS, chunks)
        found = self.owners.take()
        return [(each.cpu, each.tid, (each.to_ns - each.from_ns) / SECOND_NS) for each in found]


@pytest.mark.parametrize(
    "states", [{"user": 100}, {"system": 95, "idle": 5}, {"user": 40, "steal": 60}]
)
def test_a_thread_that_has_a_core_for_three_seconds_is_told_once(states: dict[str, int]) -> None:
    node = Node()
    told = [node.second(HOG, **states) for _ in range(8)]
    assert told == [[], [], [(1, HOG[1], 3.0)], [], [], [], [], []]
    assert [each.pid for each in node.owners.take(whole=True)] == [HOG[0]]


def test_a_core_with_time_for_others_has_no_owner() -> None:
    node = Node()
    assert [node.second(HOG, user=50, idle=50) for _ in range(8)] == [[]] * 8


def test_a_core_that_several_share_has_no_owner() -> None:
    node = Node()
    assert [node.second(HOG, OTHER) for _ in range(8)] == [[]] * 8


def test_housekeeping_beside_it_does_not_matter() -> None:
    """The kernel keeps a twentieth of each second from real-time tasks."""
    node = Node()
    tasks = [*[HOG] * 19, OTHER]
    assert [bool(node.second(*tasks)) for _ in range(4)] == [False, False, True, False]


def test_another_thread_begins_anew() -> None:
    node = Node()
    node.second(HOG)
    node.second(HOG)
    assert node.second(OTHER) == []
    assert node.second(OTHER) == []
    assert node.second(OTHER) == [(1, OTHER[1], 3.0)]


def test_after_a_pause_it_is_told_again() -> None:
    node = Node()
    for _ in range(4):
        node.second(HOG)
    node.second(HOG, idle=100)
    assert [bool(node.second(HOG)) for _ in range(3)] == [False, False, True]


def test_one_that_gave_way_is_noticed_within_seconds() -> None:
    node = Node()
    for _ in range(4):
        node.second(HOG)
    told = [bool(node.second(OTHER)) for _ in range(16)]
    assert sum(told) == 1


def test_after_a_hole_in_the_readings_everything_begins_anew() -> None:
    node = Node()
    node.second(HOG)
    node.second(HOG)
    node.owners.forget()
    assert node.second(HOG) == []
    assert node.owners.take(whole=True) == []
