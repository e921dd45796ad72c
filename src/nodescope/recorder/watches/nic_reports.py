"""Recent reports of the kernel log about network devices.

A time-out or reset is both logged and counted. Whoever reads the counters asks
here whether it was told already, so that it becomes one event and not two. Both
observers are asked by the recorder's one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

_KEPT = 256


class NicReports:
    """The last reports, by kind and device."""

    def __init__(self) -> None:
        self._told: deque[tuple[int, str, frozenset[str]]] = deque(maxlen=_KEPT)

    def tell(self, time_ns: int, kind: str, names: Iterable[str | None]) -> None:
        """A device, by any of its names, was said to have had this; no name: any of them."""
        self._told.append((time_ns, kind, frozenset(name for name in names if name)))

    def told(self, kind: str, names: Iterable[str | None], since_ns: int) -> bool:
        """Return whether that was reported of the device since then."""
        wanted = set(names)
        return any(
            told == kind and time_ns >= since_ns and (not device or device & wanted)
            for time_ns, told, device in self._told
        )
