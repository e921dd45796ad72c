"""Decides when to look who writes to a file system that fills up.

A look goes through the open files of every process, so it is taken only of a file system that
is half full and grew noticeably since the last look, and at the moment it is reported as full.
After a look there is none for `_REST` times the CPU time that it cost, but for one that is full.
"""

from __future__ import annotations

from nodescope.sources.limits.reading import Limit

MOST_NS = 300_000_000  # of CPU time, for one look
_REST = 200  # times what a look cost: half a percent of a core
_HALF, _NEARLY = 0.5, 0.9
_GREW, _GREW_NEARLY = 0.02, 0.005  # of the size: noticeable below and above `_NEARLY`


class DiskWriters:
    """Remembers what was looked at, and what it cost."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}  # by mount point, when it was looked at last
        self._rests_until_ns = 0

    def is_due(self, now_ns: int, limit: Limit, *, full: bool) -> bool:
        """Decide whether to look now who writes; `full`: it was just found to be full."""
        if limit.name != "disk" or not limit.most:
            return False
        known = self._used.setdefault(limit.scope, limit.used)
        if limit.used < known:
            self._used[limit.scope] = limit.used
        least = (_GREW_NEARLY if limit.share >= _NEARLY else _GREW) * limit.most
        grew = limit.share >= _HALF and limit.used - self._used[limit.scope] >= least
        return full or (grew and now_ns >= self._rests_until_ns)

    def looked(self, now_ns: int, limit: Limit, cost_ns: int) -> None:
        """Note a look and what it cost."""
        self._used[limit.scope] = limit.used
        self._rests_until_ns = now_ns + _REST * cost_ns
