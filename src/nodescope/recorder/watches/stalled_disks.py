"""Block devices whose requests wait while none completes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nodescope.quantities import SECOND_NS
from nodescope.sources.limits.disks import Disk

STALLED_NS = 10 * SECOND_NS
_READINGS = 60  # so many with progress show what a device never falls below


class Stalled(NamedTuple):
    """A device that made no progress."""

    device: str
    waiting: int
    since_ns: int


@dataclass(slots=True)
class _Progress:
    """What is known of one device."""

    completed: int
    since_ns: int | None = None  # first reading of requests that wait and of no completion since
    reported: bool = False
    waited: deque[int] = field(default_factory=lambda: deque(maxlen=_READINGS))

    def floor(self) -> int:
        """Return the requests that are counted as waiting even while others complete.

        Some drivers lose count of a request; it then waits forever in the statistics only.
        """
        return min(self.waited) if len(self.waited) == _READINGS else 0


class StalledDisks:
    """Compares one reading with the last."""

    def __init__(self) -> None:
        self._known: dict[str, _Progress] = {}

    def look(self, now_ns: int, disks: Mapping[str, Disk]) -> list[Stalled]:
        """Return the devices that have now waited ten seconds, each once until it moves."""
        found = []
        for device, disk in disks.items():
            known = self._known.setdefault(device, _Progress(disk.completed))
            if disk.completed != known.completed:
                known.completed = disk.completed
                known.since_ns, known.reported = None, False
                known.waited.append(disk.waiting)
            if disk.waiting <= known.floor():
                known.since_ns, known.reported = None, False
                continue
            if known.since_ns is None:
                known.since_ns = now_ns
            elif now_ns - known.since_ns >= STALLED_NS and not known.reported:
                known.reported = True
                found.append(Stalled(device, disk.waiting, known.since_ns))
        for device in self._known.keys() - disks.keys():
            del self._known[device]
        return found
