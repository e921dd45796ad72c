"""Recent reports of the kernel log, for observers that count the same trouble.

Much is both logged and counted. Whoever reads the counters asks here whether the log
reported it, so that it becomes one event and not two, and whether the log was read at all and
lost no line. Observers with a thread of their own ask as well.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

_KEPT = 512


class LogReports:
    """The last reports, by kind and by what they name."""

    def __init__(self) -> None:
        self._told: deque[tuple[int, str, frozenset[str]]] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self._read_ns: int | None = None
        self._lost_ns: int | None = None

    def tell(self, time_ns: int, kind: str, names: Iterable[str | None]) -> None:
        """Note that the log reported this of a thing, by any of its names; no name: of any."""
        with self._lock:
            self._told.append((time_ns, kind, frozenset(name for name in names if name)))

    def told(self, kind: str, names: Iterable[str | None], since_ns: int) -> bool:
        """Return whether the log reported that of the thing since then; no name: of any."""
        wanted = {name for name in names if name}
        with self._lock:
            return any(
                told == kind
                and time_ns >= since_ns
                and (not named or not wanted or bool(named & wanted))
                for time_ns, told, named in self._told
            )

    def note_read(self, now_ns: int) -> None:
        """Note that the log was read until now."""
        self._read_ns = now_ns

    def note_lost(self, time_ns: int) -> None:
        """Note that lines before this time were overwritten before they were read."""
        self._lost_ns = time_ns

    @property
    def is_read(self) -> bool:
        """Whether the log is read at all."""
        return self._read_ns is not None

    def is_whole(self, since_ns: int) -> bool:
        """Return whether the log was read, and no line of it was lost, since then."""
        return self.is_read and (self._lost_ns is None or self._lost_ns < since_ns)
