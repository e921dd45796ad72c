"""When a core is starved, and when it only looks so."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.starvation import CoreReading, Episode, StarvationWatch


@dataclass
class Node:
    """Two cores read once a second; core 1 is what the tests are about."""

    watch: StarvationWatch = field(default_factory=StarvationWatch)
    core: CoreReading = field(default_factory=lambda: CoreReading(1, 100, 1000, 5000, 50, 0))
    now_ns: int = 100 * SECOND_NS
    idle: int = 0
    asked: int = 0
    episodes: list[Episode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.read()  # what there was before

    def read(self, *, idle: int = 0, backlog: int | None = 0, seconds: int = 1,
             **moved: int) -> None:  # fmt: skip
        """The next reading: how far each counter moved, and for how many ticks it was idle."""
        self.now_ns += seconds * SECOND_NS
        self.idle += idle
        counters = {name: getattr(self.core, name) + by for name, by in moved.items()}
        self.core = replace(self.core, backlog=backlog, **counters)
        other = CoreReading(0, self.now_ns, self.now_ns, self.now_ns, self.now_ns, 3)
        suspects = self.watch.note(self.now_ns, [other, self.core])
        self.asked += len(suspects)
        self.episodes += self.watch.decide(dict.fromkeys(suspects, self.idle))

    def serve(self) -> None:
        self.read(interrupts=9, net_rx=9, processed=20, softirqs=60)


def test_packets_in_the_backlog_and_none_served() -> None:
    node = Node()
    node.serve()
    for waiting in (5, 300, 1000, 1000):
        node.read(backlog=waiting)
    assert node.episodes == []
    assert node.watch.starved_ns(1) == 3 * SECOND_NS
    node.serve()
    (episode,) = node.episodes
    assert (episode.cpu, episode.length_ns, episode.over) == (1, 3 * SECOND_NS, True)
    assert (episode.evidence, episode.backlog) == (("backlog", "silence"), 1000)
    assert node.watch.starved_ns(1) == 3 * SECOND_NS
    assert node.watch.starved_ns(0) == 0


def test_a_backlog_on_a_core_that_serves_other_work_counts_too() -> None:
    node = Node()
    node.serve()
    for _ in range(4):
        node.read(backlog=9, softirqs=40, idle=50)
    node.serve()
    assert [episode.evidence for episode in node.episodes] == [("backlog",)]


def test_a_backlog_that_is_worked_on_is_no_starvation() -> None:
    node = Node()
    for _ in range(10):
        node.read(backlog=900, net_rx=1, processed=64, softirqs=9)
    assert node.episodes == []


def test_a_moment_is_no_starvation() -> None:
    node = Node()
    node.serve()
    node.read(backlog=400)
    node.read(backlog=400)
    node.serve()
    node.read(backlog=400, seconds=60)  # the recorder itself was away
    node.serve()
    assert node.episodes == []


def test_an_interrupt_that_nothing_follows() -> None:
    node = Node()
    node.serve()
    node.read(softirqs=5, idle=90)
    node.read(interrupts=1)
    for _ in range(3):
        node.read()
    node.serve()
    (episode,) = node.episodes
    assert (episode.evidence, episode.length_ns) == (("interrupt",), 3 * SECOND_NS)


def test_a_device_is_quiet_until_it_is_polled_so_silence_tells() -> None:
    node = Node()
    node.serve()
    for _ in range(5):
        node.read()  # neither interrupts nor any soft interrupt, and never idle
    node.serve()
    (episode,) = node.episodes
    assert (episode.evidence, episode.length_ns) == (("silence",), 4 * SECOND_NS)


def test_an_idle_core_is_never_starved() -> None:
    node = Node()
    node.serve()
    for _ in range(20):
        node.read(idle=99)
    node.serve()
    node.read(interrupts=1, idle=99)
    for _ in range(20):
        node.read(idle=100)
    assert node.episodes == []
    assert node.watch.starved_ns(1) == 0


def test_a_busy_core_without_packets_is_not_starved() -> None:
    node = Node()
    node.serve()
    for _ in range(20):
        node.read(softirqs=4)  # its timers run
    node.serve()
    assert node.episodes == []
    assert node.asked == 0


def test_a_core_no_device_interrupts_is_not_suspected() -> None:
    node = Node()
    for _ in range(20):
        node.read()
    assert (node.episodes, node.asked) == ([], 0)


def test_cores_set_apart_may_be_silent() -> None:
    node = Node(watch=StarvationWatch(apart=[1]))
    node.serve()
    for _ in range(9):
        node.read()
    assert node.episodes == []
    for _ in range(4):
        node.read(backlog=7)
    node.serve()
    assert [episode.evidence for episode in node.episodes] == [("backlog",)]


def test_a_long_episode_is_told_while_it_lasts_and_once() -> None:
    node = Node()
    node.serve()
    for _ in range(30):
        node.read(backlog=1)
    (episode,) = node.episodes
    assert (episode.over, episode.length_ns) == (False, 10 * SECOND_NS)
    node.serve()
    assert len(node.episodes) == 1
    assert node.watch.starved_ns(1) == 29 * SECOND_NS


def test_a_core_that_goes_offline_ends_its_episode() -> None:
    node = Node()
    node.serve()
    for _ in range(4):
        node.read(backlog=1)
    node.watch.note(node.now_ns + SECOND_NS, [])
    assert [episode.cpu for episode in node.watch.decide({})] == [1]


def test_kernels_that_tell_no_backlog() -> None:
    node = Node()
    node.serve()
    for _ in range(5):
        node.read(backlog=None)
    node.serve()
    assert [episode.evidence for episode in node.episodes] == [("silence",)]
