"""Finds tasks that are in uninterruptible sleep for over a second, within an allowance of CPU.

Reading one task takes some ten microseconds, so a node of 20,000 is gone through in slices:
the processes first (which are most of the kernel's own threads and of what people run), then
the other threads of those that have any. What is asleep so is looked at again a second later:
if it never ran in between it is blocked, else it waits for a disk now and then, as all do.

The allowance grows with time and may be saved for a while, so that the first look after a
quiet minute is over in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from nodescope.quantities import SECOND_NS

BLOCKED_NS = SECOND_NS
_RATIO = 0.0014  # of a core, on average
_SAVED_NS = 80_000_000  # of CPU, at most
_AT_ONCE_NS = 20_000_000
_APART_NS = 900_000_000  # between two looks at one task; looks are a second apart, or nearly
_PASS_NS = 5 * SECOND_NS  # from the start of one pass to the next
_MAX_SUSPECTS = 4096
_TOLD_NS = 60 * SECOND_NS  # one that is blocked for long is told so often


class TaskLooks(Protocol):
    """The part of `TaskFiles` that is needed to find blocked tasks."""

    def list_processes(self) -> list[int]: ...

    def list_threads(self, pid: int) -> list[int]: ...

    def read_state(self, tid: int) -> tuple[str, int] | None: ...

    def count_runs(self, tid: int) -> int | None: ...


@dataclass(slots=True)
class BlockedSuspect:
    """A task in uninterruptible sleep, since when, and how often it had run by then."""

    pid: int
    tid: int
    from_ns: int
    seen_ns: int
    runs: int
    told_ns: int = 0  # how long it was blocked when it was last told

    @property
    def blocked_ns(self) -> int:
        return self.seen_ns - self.from_ns


class BlockedTasks:
    """Looks at tasks while there is a reason, or while one is blocked."""

    def __init__(self, tasks: TaskLooks, cpu_clock: Callable[[], int]) -> None:
        self._tasks = tasks
        self._cpu_clock = cpu_clock
        self._suspects: dict[int, BlockedSuspect] = {}
        self._over: list[BlockedSuspect] = []
        self._pass: Iterator[None] | None = None
        self._pass_ns: int | None = None
        self._saved_ns = _SAVED_NS
        self._looked_ns: int | None = None
        self._now_ns = 0

    @property
    def is_idle(self) -> bool:
        """Return whether there is nothing to look at again, or to tell."""
        return not (self._suspects or self._over)

    def look(self, now_ns: int, *, reason: bool) -> None:
        """Look at as many tasks as the allowance has room for."""
        self._earn(now_ns)
        self._now_ns = now_ns
        if not reason:
            self._pass = None
        if not (reason or self._suspects) or self._saved_ns <= 0:
            return
        started = self._cpu_clock()
        room = min(_AT_ONCE_NS, self._saved_ns)
        # Thousands that are blocked must not keep the others from being found.
        self._look_again(started + (room // 2 if self._pass is not None else room))
        if reason:
            self._go_on(started + room)
        self._saved_ns -= self._cpu_clock() - started

    def take(self, *, whole: bool = False) -> list[BlockedSuspect]:
        """Return the blocked tasks to tell of: new ones, and old ones now and then."""
        due = [each for each in self._suspects.values() if whole or _is_due(each)]
        found = [each for each in due if each.blocked_ns >= BLOCKED_NS]
        for each in found:
            each.told_ns = each.blocked_ns
        return found

    def take_over(self) -> list[BlockedSuspect]:
        """Return those that were told of and are blocked no longer, as they were last seen."""
        over, self._over = self._over, []
        return over

    def _earn(self, now_ns: int) -> None:
        passed = 0 if self._looked_ns is None else now_ns - self._looked_ns
        self._looked_ns = now_ns
        self._saved_ns = min(_SAVED_NS, self._saved_ns + int(passed * _RATIO))

    def _look_again(self, until: int) -> None:
        """Keep the suspects that have not run since; those that waited longest for it first."""
        due = [each for each in self._suspects.values() if self._now_ns - each.seen_ns >= _APART_NS]
        due.sort(key=lambda each: each.seen_ns)
        for suspect in due:
            if self._cpu_clock() >= until:
                return
            state = self._tasks.read_state(suspect.tid)
            runs = self._tasks.count_runs(suspect.tid) if state and state[0] == "D" else None
            if runs is not None and runs == suspect.runs:
                suspect.seen_ns = self._now_ns
                continue
            del self._suspects[suspect.tid]
            if suspect.told_ns:
                self._over.append(suspect)
            if runs is not None:  # it ran, and sleeps again
                self._suspects[suspect.tid] = BlockedSuspect(
                    suspect.pid, suspect.tid, self._now_ns, self._now_ns, runs
                )

    def _go_on(self, until: int) -> None:
        if self._pass is None:
            if self._pass_ns is not None and self._now_ns - self._pass_ns < _PASS_NS:
                return
            if self._cpu_clock() >= until:
                return
            self._pass_ns = self._now_ns
            self._pass = self._walk()
        for _ in self._pass:
            if self._cpu_clock() >= until:
                return
        self._pass = None

    def _walk(self) -> Iterator[None]:
        """Look at every task once: processes, then the other threads of those that have any."""
        with_threads: list[int] = []
        for pid in self._tasks.list_processes():
            state = self._tasks.read_state(pid)
            if state is not None:
                self._suspect(pid, pid, state[0])
                if state[1] > 1:
                    with_threads.append(pid)
            yield
        with_threads.sort(key=lambda pid: pid not in self._suspects)
        for pid in with_threads:
            for tid in self._tasks.list_threads(pid):
                if tid != pid and (state := self._tasks.read_state(tid)) is not None:
                    self._suspect(pid, tid, state[0])
                yield

    def _suspect(self, pid: int, tid: int, state: str) -> None:
        if state != "D" or tid in self._suspects or len(self._suspects) >= _MAX_SUSPECTS:
            return
        runs = self._tasks.count_runs(tid)
        if runs is not None:
            self._suspects[tid] = BlockedSuspect(pid, tid, self._now_ns, self._now_ns, runs)


def _is_due(suspect: BlockedSuspect) -> bool:
    """Decide whether to tell of it again: when it has grown by half, and every minute."""
    told, blocked = suspect.told_ns, suspect.blocked_ns
    return blocked >= 1.5 * told or blocked - told >= _TOLD_NS
