"""Decides when a file system that fills up is full enough for an event.

It is full at 99 %, or at 95 % if at the pace of the last minutes nothing is left in an hour. One
that was full when it was first seen has been so by design or for long, and is no event unless
nothing at all is left of it: the table `limits` shows it anyway.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from nodescope.quantities import SECOND_NS
from nodescope.sources.limits.reading import Limit

_NEARLY, _FULL, _CLEARED = 0.95, 0.99, 0.90
_MEASURED_NS = 30 * SECOND_NS  # a pace is measured over this at least
_REMEMBERED_NS = 300 * SECOND_NS
_SOON_NS = 3600 * SECOND_NS


@dataclass(slots=True)
class _Filling:
    """What is known of blocks or inodes of one file system."""

    seen_below: bool = False  # below full, at some time
    above: bool = False  # reported, and not yet cleared
    readings: deque[tuple[int, int]] = field(default_factory=deque)  # time, used


class FillingWatch:
    """Follows every file system's blocks and inodes."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Filling] = {}

    def look(self, now_ns: int, limit: Limit, *, by_design: bool) -> bool:
        """Return whether it is full now and was not when it was last reported.

        `by_design`: it may be full from the start and healthy, as one in memory.
        """
        known = self._known.setdefault((limit.name, limit.scope), _Filling())
        first = not known.readings
        left_ns = _time_left(now_ns, known.readings, limit)
        _remember(known.readings, now_ns, limit.used)
        if limit.share < _CLEARED:
            known.above = False
        if limit.share < _FULL:
            known.seen_below = True
        empty = limit.most is not None and limit.used >= limit.most
        full = limit.share >= _FULL and (known.seen_below or (first and empty and not by_design))
        filling = limit.share >= _NEARLY and left_ns is not None and left_ns <= _SOON_NS
        if known.above or not (full or filling):
            return False
        known.above = True
        return True


def _remember(readings: deque[tuple[int, int]], now_ns: int, used: int) -> None:
    readings.append((now_ns, used))
    while now_ns - readings[0][0] > _REMEMBERED_NS:
        readings.popleft()


def _time_left(now_ns: int, readings: deque[tuple[int, int]], limit: Limit) -> float | None:
    """Return the time until nothing is left, at the pace of the last minutes; None: no growth."""
    if not readings or limit.most is None:
        return None
    earlier_ns, used = readings[0]
    grown = limit.used - used
    if grown <= 0 or now_ns - earlier_ns < _MEASURED_NS:
        return None
    return (limit.most - limit.used) / grown * (now_ns - earlier_ns)
