"""The recorder's own budget: measured over a window, answered by a lower rate.

Lowering the rate is the only lever that always works; it is pulled at most once
per window, one step of the ladder at a time, and never back by itself: a node
that was too busy for the full rate once will be so again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW_NS = 60_000_000_000
GRACE_NS = 20_000_000_000  # start-up reads symbols; that is paid once
LADDER_HZ = (49, 23, 11, 5)


@dataclass(slots=True)
class Budget:
    """Decides when to slow down; knows nothing about how."""

    cpu_ratio: float
    memory_bytes: int
    _readings: deque[tuple[int, int]] = field(default_factory=deque)  # monotonic ns, cpu ns
    _started_ns: int | None = None

    def over(self, now_ns: int, cpu_ns: int, rss_bytes: int) -> str | None:
        """Why we are over budget at this reading, or None."""
        if self._started_ns is None:
            self._started_ns = now_ns
        if now_ns - self._started_ns < GRACE_NS:
            return None
        self._readings.append((now_ns, cpu_ns))
        while now_ns - self._readings[0][0] > WINDOW_NS:
            self._readings.popleft()
        if rss_bytes > self.memory_bytes:
            return f"{rss_bytes / 1e6:.0f} MB of memory, over {self.memory_bytes / 1e6:.0f} MB"
        since_ns, since_cpu_ns = self._readings[0]
        if now_ns - since_ns < WINDOW_NS // 2:
            return None
        ratio = (cpu_ns - since_cpu_ns) / (now_ns - since_ns)
        if ratio > self.cpu_ratio:
            return f"{ratio:.2%} of a core, over {self.cpu_ratio:.2%}"
        return None

    def lowered(self) -> None:
        """Start a new window: the next reading must not blame the old rate."""
        self._readings.clear()


def next_lower(frequency_hz: int) -> int | None:
    """The next step down the ladder, or None at its end."""
    return next((step for step in LADDER_HZ if step < frequency_hz), None)
