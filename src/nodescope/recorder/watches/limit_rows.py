"""Rows of `limits` and `trouble_counts`, where something changed."""

from __future__ import annotations

from nodescope.ingest.observation import Observation
from nodescope.records.json import JsonObject
from nodescope.records.witness_tables import LimitRow, TroubleCountRow
from nodescope.sources.limits.reading import Limit, TroubleCount

_NOTICEABLE = 100  # a hundredth of the limit; of an unlimited thing, a tenth of what is used
_OF_UNLIMITED = 10


class LimitRows:
    """Remembers what one observer last wrote of each limit and counter."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, str], Limit] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def begin_segment(self) -> None:
        """Write everything again."""
        self._limits, self._counts = {}, {}

    def add_limit(self, said: Observation, now_ns: int, limit: Limit) -> None:
        """Add a row if the use of a limit changed noticeably."""
        key = (limit.name, limit.scope)
        if not _is_noticeable(self._limits.get(key), limit):
            return
        self._limits[key] = limit
        row = LimitRow(
            time_ns=now_ns, name=limit.name, scope=limit.scope, used=limit.used, most=limit.most
        )
        said.add(row)

    def add_count(self, said: Observation, now_ns: int, count: TroubleCount) -> None:
        """Add a row if a counter changed."""
        key = (count.name, count.subject)
        if self._counts.get(key) != count.value:
            self._counts[key] = count.value
            row = TroubleCountRow(
                time_ns=now_ns, name=count.name, subject=count.subject, value=count.value
            )
            said.add(row)


def _is_noticeable(before: Limit | None, now: Limit) -> bool:
    """Decide whether a limit changed, or its use did by a hundredth of it."""
    if before is None or (before.most is None) != (now.most is None):
        return True
    change = abs(now.used - before.used)
    if now.most is None or before.most is None:
        return change > 0 and change * _OF_UNLIMITED >= before.used
    change = max(change, abs(now.most - before.most))
    return change > 0 and change * _NOTICEABLE >= now.most


def describe_limit(limit: Limit) -> JsonObject:
    """Return a limit as details of an event."""
    return {"limit": limit.name, "scope": limit.scope, "used": limit.used, "most": limit.most}
