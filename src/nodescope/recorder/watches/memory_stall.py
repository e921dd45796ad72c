"""A minute in which all tasks of the node waited for memory a fifth of the time.

`full` of `/proc/pressure/memory` counts the time in which no task that wanted to run could.
"""

from __future__ import annotations

from collections import deque

from nodescope.quantities import SECOND_NS
from nodescope.records.event import Event
from nodescope.records.trouble_details import FullTableDetails

_MINUTE_NS = 60 * SECOND_NS
_SERIOUS, _CLEARED = 0.2, 0.1


class MemoryStallWatch:
    """Compares the total with that of a minute ago."""

    def __init__(self) -> None:
        self._totals: deque[tuple[int, int]] = deque()  # time, µs
        self._reported = False

    def look(self, now_ns: int, full_us: int) -> list[Event]:
        """Return the event of such a minute, once until the pressure fell."""
        self._totals.append((now_ns, full_us))
        while len(self._totals) > 1 and now_ns - self._totals[1][0] >= _MINUTE_NS:
            self._totals.popleft()
        since_ns, before_us = self._totals[0]
        passed_ns = now_ns - since_ns
        if passed_ns < _MINUTE_NS:
            return []
        share = (full_us - before_us) * 1000 / passed_ns
        if share < _CLEARED:
            self._reported = False
        if share < _SERIOUS or self._reported:
            return []
        self._reported = True
        details = FullTableDetails(
            limit="memory",
            scope="node",
            statistic="memory full",
            before=before_us,
            value=full_us,
            within_s=round(passed_ns / SECOND_NS, 1),
            known_from="counters",
        )
        message = f"all tasks waited for memory {share:.0%} of the last minute"
        return [Event(now_ns, "memory_pressure", "node", message, details=details)]
