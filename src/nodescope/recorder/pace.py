"""When things are due, and what the clocks did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.clock import CLOCK_STEP_NS, ClockPair

_SLEW = 0.0006  # adjtime slews at 500 ppm at most; the rest is reading error


@dataclass(slots=True)
class Pace:
    """Something that happens every so often, on a fixed grid."""

    interval_ns: int
    due_ns: int

    def take(self, now_ns: int) -> int | None:
        """How late it is if it is due, else None; due again on the next grid point."""
        if now_ns < self.due_ns:
            return None
        late = now_ns - self.due_ns
        self.due_ns += (late // self.interval_ns + 1) * self.interval_ns
        return late


class ClockWatch:
    """Tells slow discipline of the wall clock from steps."""

    def __init__(self, pair: ClockPair) -> None:
        self.pair = pair

    def step_ns(self, pair: ClockPair) -> int:
        """By how much the wall clock was set since the last look; 0 if it was not."""
        moved = pair.offset_ns - self.pair.offset_ns
        passed = pair.monotonic_ns - self.pair.monotonic_ns
        self.pair = pair
        return moved if abs(moved) > CLOCK_STEP_NS + _SLEW * passed else 0
