"""The clock as a protocol, so that tests can control the time.

All recorded times are `CLOCK_MONOTONIC` nanoseconds: they never step. A pair
of readings (monotonic, wall) taken together places them on the wall clock;
`read_pair` brackets the wall reading between two monotonic ones and so bounds
its own error.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

CLOCK_STEP_NS = 50_000_000  # a wall clock that moves by more at once was set, not disciplined


@dataclass(frozen=True, slots=True)
class ClockPair:
    """The two clocks read at one moment."""

    monotonic_ns: int
    wall_ns: int

    @property
    def offset_ns(self) -> int:
        """Return the difference to add to a monotonic time to get a wall time."""
        return self.wall_ns - self.monotonic_ns


class Clock(Protocol):
    """The clocks a recorder needs."""

    def monotonic_ns(self) -> int:
        """Nanoseconds that never step back and do not follow the wall clock."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch, as the machine believes now."""


class SystemClock:
    """The machine's own clocks."""

    def monotonic_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def wall_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_REALTIME)


def read_pair(clock: Clock, tries: int = 3) -> ClockPair:
    """Read both clocks as close together as `tries` attempts allow."""
    best: tuple[int, ClockPair] | None = None
    for _ in range(tries):
        before = clock.monotonic_ns()
        wall = clock.wall_ns()
        after = clock.monotonic_ns()
        width = after - before
        if best is None or width < best[0]:
            best = (width, ClockPair(before + width // 2, wall))
    assert best is not None
    return best[1]
