from __future__ import annotations

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.block_reasons import HOLD_NS, BlockReasons, Signs
from nodescope.sources.node.load import Load


class Node:
    """A node of some cores, second by second."""

    def __init__(self, cores: int = 8) -> None:
        self.blocked = 0
        self.asked = 0
        self.now = 100
        self.io = self.memory = self.hung = 0
        self.reasons = BlockReasons(cores, self._count)
        self.second()

    def _count(self) -> int:
        self.asked += 1
        return self.blocked

    def second(
        self, *, io: float = 0.0, memory: float = 0.0, hung: int = 0, load: Load | None = None
    ) -> str | None:
        """Say how much of it was stalled."""
        self.now += 1
        self.io += int(io * 1_000_000)
        self.memory += int(memory * 1_000_000)
        self.hung += hung
        stalled = {"io": self.io, "memory": self.memory}
        return self.reasons.take(self.now * SECOND_NS, Signs(stalled, load, self.hung))


def test_a_quiet_node_gives_no_reason_and_is_not_asked_much() -> None:
    node = Node()
    assert {node.second(io=0.05, load=Load(0.5, 1)) for _ in range(60)} == {None}
    assert node.asked == 0


def test_one_task_that_waits_for_a_disk_is_a_reason_at_the_second_look() -> None:
    node = Node(cores=96)
    node.blocked = 1
    assert node.second(io=0.0104) is None  # one core's share of it
    assert node.second(io=0.0104) == "io"


def test_disks_that_are_busy_without_anybody_waiting_are_none() -> None:
    node = Node()
    assert {node.second(io=0.5) for _ in range(5)} == {None}


def test_a_reason_lasts_for_a_while_after_its_last_sign() -> None:
    node = Node()
    node.blocked = 2
    node.second(io=1.0)
    assert node.second(io=1.0) == "io"
    node.blocked = 0
    held = [node.second() for _ in range(HOLD_NS // SECOND_NS)]
    assert held == ["io"] * (HOLD_NS // SECOND_NS - 1) + [None]


def test_memory_pressure_and_hung_tasks_are_reasons() -> None:
    node = Node()
    node.second(memory=0.5)
    assert node.second(memory=0.5) == "memory"
    assert Node().second(hung=1) == "hung task"


def test_on_a_kernel_without_pressure_blocked_processes_are_counted() -> None:
    counts = iter([0, 1, 0, 1, 1])
    reasons = BlockReasons(4, lambda: next(counts))
    found = [reasons.take(at * SECOND_NS, Signs({})) for at in range(6)]
    assert found == [None, None, None, None, None, "io"]


def _load(before: float, active: float) -> float:
    decay = 1884 / 2048
    return round(before * decay + active * (1 - decay), 2)


def test_a_load_without_runnable_tasks_is_a_reason() -> None:
    """A task that waits for a lock makes no pressure."""
    node = Node()
    node.second(load=Load(0.0, 1))
    assert node.second(load=Load(_load(0.0, 1), 1)) == "load"


def test_a_load_that_runnable_tasks_explain_is_none() -> None:
    node = Node()
    load = 4.0
    for _ in range(5):
        load = _load(load, 8.0)
        for _ in range(5):
            assert node.second(load=Load(load, 9)) is None


def test_on_a_busy_node_the_load_must_be_unexplained_twice() -> None:
    node = Node()
    loads = [4.0]
    for _ in range(2):
        loads.append(_load(loads[-1], 7.0))
    found = [node.second(load=Load(each, 5)) for each in loads for _ in range(5)]
    assert found[:10] == [None] * 10
    assert found[10] == "load"
