"""File systems in user space that do not answer.

Requests that wait at every look may be those of a busy daemon. It is stalled if, meanwhile, a
task sleeps for an answer and was not woken between two looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nodescope.quantities import SECOND_NS

_SUSPECT_NS = 10 * SECOND_NS
_PROVEN_NS = 20 * SECOND_NS

Sleepers = Mapping[tuple[int, int], str]  # id and switches of a task → its name


class StalledConnection(NamedTuple):
    """A connection whose daemon does not answer."""

    minor: str
    waiting: int
    since_ns: int
    comm: str  # of a task that waits


class StalledFuse:
    """Compares one reading with the last."""

    def __init__(self) -> None:
        self._since_ns: dict[str, int] = {}
        self._reported: set[str] = set()
        self._sleepers: Sleepers = {}

    def look(
        self, now_ns: int, waiting: Mapping[str, int], find_sleepers: Callable[[], Sleepers]
    ) -> list[StalledConnection]:
        """Return the connections that are stalled, each once until it answers."""
        for minor in [minor for minor in self._since_ns if not waiting.get(minor)]:
            del self._since_ns[minor]
            self._reported.discard(minor)
        for minor, requests in waiting.items():
            if requests:
                self._since_ns.setdefault(minor, now_ns)
        suspects = [
            minor
            for minor, since_ns in self._since_ns.items()
            if now_ns - since_ns >= _SUSPECT_NS and minor not in self._reported
        ]
        if not suspects:
            self._sleepers = {}
            return []
        before, self._sleepers = self._sleepers, find_sleepers()
        asleep = self._sleepers.keys() & before.keys()
        if not asleep:
            return []
        comm = self._sleepers[min(asleep)]
        found = [
            StalledConnection(minor, waiting[minor], self._since_ns[minor], comm)
            for minor in suspects
            if now_ns - self._since_ns[minor] >= _PROVEN_NS
        ]
        self._reported |= {each.minor for each in found}
        return found
