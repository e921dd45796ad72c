from __future__ import annotations

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.stalled_fuse import StalledConnection, StalledFuse


class Daemon:
    """A connection looked at every ten seconds, with a task that waits for it."""

    def __init__(self) -> None:
        self.stalled = StalledFuse()
        self.now_ns = 0
        self.scans = 0

    def look(self, waiting: int, switches: int | None) -> list[StalledConnection]:
        self.now_ns += 10 * SECOND_NS

        def find() -> dict[tuple[int, int], str]:
            self.scans += 1
            return {} if switches is None else {(77, switches): "ls"}

        return self.stalled.look(self.now_ns, {"52": waiting}, find)


def test_a_task_that_was_not_woken_proves_a_stall() -> None:
    daemon = Daemon()
    assert [daemon.look(1, 5) for _ in range(2)] == [[], []]
    (found,) = daemon.look(1, 5)
    assert found == StalledConnection("52", 1, 10 * SECOND_NS, "ls")
    assert daemon.look(1, 5) == []
    assert daemon.look(0, None) == []
    assert [len(daemon.look(1, 6)) for _ in range(3)] == [0, 0, 1]


def test_a_busy_daemon_always_has_a_request_waiting() -> None:
    daemon = Daemon()
    assert not any(daemon.look(1, switches) for switches in range(20))
    assert not any(daemon.look(1, None) for _ in range(5))


def test_tasks_are_not_searched_while_nothing_waits() -> None:
    daemon = Daemon()
    for waiting in (0, 1, 0, 1, 0):
        daemon.look(waiting, 5)
    assert daemon.scans == 0
