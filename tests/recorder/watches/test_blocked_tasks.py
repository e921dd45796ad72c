from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.blocked_tasks import BlockedTasks

COST_NS = 10_000  # of reading one file


@dataclass
class Task:
    pid: int
    state: str = "S"
    runs: int = 1


@dataclass
class Node:
    """Tasks by number, each look at which costs CPU."""

    tasks: dict[int, Task] = field(default_factory=dict)
    cpu_ns: int = 0
    now: int = 100
    threads: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.blocked = BlockedTasks(self, lambda: self.cpu_ns)

    def list_processes(self) -> list[int]:
        self.cpu_ns += COST_NS
        self.threads = defaultdict(list)
        for tid, task in self.tasks.items():
            self.threads[task.pid].append(tid)
        return [tid for tid, task in self.tasks.items() if task.pid == tid]

    def list_threads(self, pid: int) -> list[int]:
        self.cpu_ns += COST_NS
        return self.threads[pid]

    def read_state(self, tid: int) -> tuple[str, int] | None:
        self.cpu_ns += COST_NS
        task = self.tasks.get(tid)
        if task is None:
            return None
        return task.state, len(self.threads[task.pid])

    def count_runs(self, tid: int) -> int | None:
        self.cpu_ns += COST_NS
        return self.tasks[tid].runs if tid in self.tasks else None

    def look(self, *, reason: bool = True) -> list[tuple[int, float]]:
        """A second passes; return who is told of, and for how long it is blocked."""
        self.now += 1
        self.blocked.look(self.now * SECOND_NS, reason=reason)
        return [(each.tid, each.blocked_ns / SECOND_NS) for each in self.blocked.take()]


def processes(count: int) -> dict[int, Task]:
    return {pid: Task(pid) for pid in range(1, count + 1)}


def test_a_task_that_sleeps_on_for_a_second_is_blocked() -> None:
    node = Node(processes(5))
    node.tasks[3].state = "D"
    assert node.look() == []
    assert node.look() == [(3, 1.0)]


def test_it_is_told_again_as_it_lasts_and_no_longer() -> None:
    node = Node(processes(5))
    node.tasks[3].state = "D"
    told = [length for _ in range(200) for _, length in node.look()]
    assert told[:5] == [1.0, 2.0, 3.0, 5.0, 8.0]
    assert all(after - before <= 60 for before, after in pairwise(told))
    node.tasks[3].state = "S"
    assert node.look() == []
    assert len(node.blocked.take_over()) == 1
    assert node.blocked.is_idle


def test_short_waits_for_a_disk_are_not_told() -> None:
    node = Node(processes(5))
    for _ in range(20):
        node.tasks[3].state = "D"
        node.tasks[3].runs += 7  # it went on and sleeps again
        assert node.look() == []


def test_without_a_reason_nothing_is_read() -> None:
    node = Node(processes(500))
    node.tasks[3].state = "D"
    for _ in range(100):
        assert node.look(reason=False) == []
    assert node.cpu_ns == 0


def test_a_task_that_is_blocked_is_followed_when_the_reason_is_over() -> None:
    node = Node(processes(5))
    node.tasks[3].state = "D"
    node.look()
    assert node.look(reason=False) == [(3, 1.0)]
    assert node.look(reason=False) == [(3, 2.0)]


def test_threads_are_found_after_the_processes() -> None:
    node = Node(processes(5))
    node.tasks |= {50: Task(2), 51: Task(2, "D"), 52: Task(4)}
    node.look()
    assert node.look() == [(51, 1.0)]


def test_one_that_ends_is_forgotten() -> None:
    node = Node(processes(5))
    node.tasks[3].state = "D"
    node.look()
    del node.tasks[3]
    assert node.look() == []
    assert node.blocked.is_idle


def test_twenty_thousand_tasks_are_gone_through_within_the_allowance() -> None:
    node = Node(processes(4000))
    node.tasks |= {tid: Task(tid % 400 + 1) for tid in range(10_000, 26_000)}
    node.tasks[3999].state = "D"
    found: list[int] = []
    seconds = 0
    while 3999 not in found:
        found += [tid for tid, _ in node.look()]
        seconds += 1
    assert seconds <= 5  # what was saved is enough for all processes
    node.tasks[25_999].state = "D"
    while 25_999 not in found:
        found += [tid for tid, _ in node.look()]
        seconds += 1
    for _ in range(600):
        node.look()
    assert node.cpu_ns < 0.003 * (seconds + 600) * SECOND_NS


def test_two_thousand_blocked_tasks_stay_within_it_too() -> None:
    node = Node(processes(2500))
    for pid in range(1, 2001):
        node.tasks[pid].state = "D"
    told = {tid for _ in range(300) for tid, _ in node.look()}
    assert node.cpu_ns < 0.003 * 300 * SECOND_NS
    assert len(told) == 2000


def test_a_segment_begins_with_all_of_them() -> None:
    node = Node(processes(5))
    node.tasks[3].state = "D"
    node.look()
    node.look()
    assert [each.tid for each in node.blocked.take(whole=True)] == [3]


def test_what_is_over_is_returned_as_it_was_last_seen() -> None:
    node = Node(processes(5))
    node.tasks[3].state = node.tasks[4].state = "D"
    for _ in range(10):
        node.look()
    node.tasks[3].state = "S"
    node.tasks[4].runs += 1  # it ran, and sleeps again
    assert node.look() == []
    over = [(each.tid, each.blocked_ns / SECOND_NS) for each in node.blocked.take_over()]
    assert over == [(3, 9.0), (4, 9.0)]
    assert node.look() == [(4, 1.0)]
    assert node.blocked.take_over() == []
