"""Decides whether there is a reason to look for blocked tasks: no IO, only figures.

Looking at every task of a node is dear, and most nodes have none that is blocked. A task that
waits for a disk all the time makes pressure of at least one core's share of it (the kernel
averages over the cores that are not idle) and is counted in `procs_blocked`. One that waits
for a lock makes neither, but it counts in the load: from one update of the load to the next
(every 5 s) it follows how many tasks were active, and runnable ones alone do not explain it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nodescope.quantities import SECOND_NS
from nodescope.sources.node.load import Load

HOLD_NS = 10 * SECOND_NS  # a reason lasts so long after its last sign
_STALLED = 0.9  # of the time: a task that was blocked all the time
_DECAY = 1884 / 2048  # of the one-minute load per update (EXP_1 in include/linux/sched/loadavg.h)
_UNEXPLAINED = 0.7  # tasks; half a task is noise
_QUIET = 0.5  # runnable tasks: with fewer one update of the load is enough


@dataclass(frozen=True, slots=True)
class Signs:
    """The figures of one look; None: not told."""

    stalled_us: Mapping[str, int]  # by resource: time in which some task was stalled, since boot
    load: Load | None = None
    hung: int | None = None  # grows with every hung task that the kernel detects
    is_told: bool = False  # whether the kernel's log reported one since the last look


class BlockReasons:
    """Takes a look every second; says why blocked tasks are to be looked for.

    `count_blocked` is asked only where pressure allows that there are any: it is dear.
    """

    def __init__(self, cores: int, count_blocked: Callable[[], int | None]) -> None:
        self._share = _STALLED / max(1, cores)
        self._count_blocked = count_blocked
        self._before: tuple[int, Signs] | None = None
        self._twice: set[str] = set()  # signs that count when they come again
        self._load: float | None = None
        self._runnable: list[int] = []
        self._reason: str | None = None
        self._until_ns = 0

    def take(self, now_ns: int, signs: Signs) -> str | None:
        """Return the reason that holds now; None if there is none."""
        before, self._before = self._before, (now_ns, signs)
        reason = None
        if before is not None:
            holds = now_ns < self._until_ns - HOLD_NS // 2
            reason = self._find(now_ns - before[0], before[1], signs, holds=holds)
        if reason is not None:
            self._reason, self._until_ns = reason, now_ns + HOLD_NS
        return self._reason if now_ns < self._until_ns else None

    def _find(self, passed_ns: int, before: Signs, signs: Signs, *, holds: bool) -> str | None:
        if signs.is_told:
            return "hung task"
        if signs.hung is not None and before.hung is not None and signs.hung > before.hung:
            return "hung task"
        least_us = self._share * passed_ns / 1000
        once = {
            resource
            for resource, stalled in signs.stalled_us.items()
            if stalled - before.stalled_us.get(resource, stalled) >= least_us
        }
        if "io" in once or "io" not in signs.stalled_us:
            once.discard("io")
            if not holds and self._count_blocked():
                once.add("io")
        twice = once & self._twice
        self._twice = once | (self._twice & {"load"})
        if twice:
            return min(twice)
        return self._judge_load(signs.load) if signs.load is not None else None

    def _judge_load(self, load: Load) -> str | None:
        before = self._load
        self._runnable.append(max(0, load.runnable - 1))  # we run ourselves
        if before is None or before == load.one_minute:
            self._load = load.one_minute
            del self._runnable[:-10]
            return None
        runnable = sum(self._runnable) / len(self._runnable)
        active = (load.one_minute - before * _DECAY) / (1 - _DECAY)
        self._load, self._runnable = load.one_minute, []
        if active - runnable < _UNEXPLAINED:
            self._twice.discard("load")
            return None
        if "load" in self._twice or runnable < _QUIET:
            return "load"
        self._twice.add("load")
        return None
