"""How fast something grows, and how long until it reaches a bound.

The rate is that of the whole time that was looked at; its interval is that of the slowest and
the fastest of four parts of that time, so that a burst does not pass for a trend. A forecast
reaches no further than ten times the time it rests on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS, format_duration

PARTS = 4
_REACH = 10  # times the observed span
_FEWEST = 3  # readings


@dataclass(frozen=True, slots=True)
class Growth:
    """How something moved over a time, per hour; `low` and `high` bound the rate."""

    per_hour: float
    low: float
    high: float
    over_ns: int
    last: int

    @property
    def steady(self) -> bool:
        """Return whether it grew in every part of the time."""
        return self.low > 0

    def left_ns(self, bound: float) -> tuple[int, int | None] | None:
        """Return the least and the longest time until it reaches a bound.

        None if it does not grow, or only beyond what so short a look can tell; the longest
        is None where it stood still for a while.
        """
        if self.last >= bound or self.per_hour <= 0:
            return None
        room = bound - self.last
        least, likely = (round(room / rate * HOUR_NS) for rate in (self.high, self.per_hour))
        if likely > _REACH * self.over_ns:
            return None
        return least, round(room / self.low * HOUR_NS) if self.low > 0 else None


def find_growth(times_ns: Sequence[int], values: Sequence[int]) -> Growth | None:
    """Return how readings in order of time moved; a value holds until the next one.

    None from too few readings.
    """
    if len(times_ns) < _FEWEST or times_ns[-1] <= times_ns[0]:
        return None
    first_ns, over_ns = times_ns[0], times_ns[-1] - times_ns[0]
    edges_ns = [first_ns + over_ns * part // PARTS for part in range(PARTS + 1)]
    marks = [values[bisect_right(times_ns, edge_ns) - 1] for edge_ns in edges_ns]
    rates = [(later - earlier) * PARTS / over_ns * HOUR_NS for earlier, later in pairwise(marks)]
    per_hour = (values[-1] - values[0]) / over_ns * HOUR_NS
    return Growth(per_hour, min(rates), max(rates), over_ns, values[-1])


def describe_left(least_ns: int, longest_ns: int | None) -> str:
    """Return a time that is left in words: one, from one to another, or at least one."""
    least = format_duration(_rounded(least_ns))
    if longest_ns is None:
        return f"{least} or more"
    longest = format_duration(_rounded(longest_ns))
    return least if least == longest else f"{least} to {longest}"


def _rounded(nanoseconds: int) -> int:
    """Return a forecast without digits that it does not have."""
    digit_ns = next((each for longest, each in _DIGITS if nanoseconds < longest), HOUR_NS)
    return round(nanoseconds / digit_ns) * digit_ns


# Up to which time a forecast is said to the second, and to the minute.
_DIGITS = ((10 * MINUTE_NS, SECOND_NS), (10 * HOUR_NS, MINUTE_NS))
