"""The recorder's own budget: measured over a window, answered by a lower rate.

Sampling is most of the cost on most nodes, but not on one that starts hundreds of
processes a second: their births and deaths cost the same at any rate. So a step
down that did not bring the cost down by a fifth is taken back, and that is the end
of it: being blind would not make the node's recorder cheaper.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

WINDOW_NS = 60_000_000_000
GRACE_NS = 20_000_000_000  # start-up reads symbols; that is paid once
LADDER_HZ = (49, 23, 11, 5)
HELPED = 0.8  # of the cost before, at most, after a step that was worth it


@dataclass(frozen=True, slots=True)
class Decision:
    """Sample at another rate from now on."""

    frequency_hz: int
    kind: str
    message: str


@dataclass(slots=True)
class Budget:
    """Decides at which rate to sample; knows nothing about how."""

    cpu_ratio: float
    memory_bytes: int
    _readings: deque[tuple[int, int]] = field(default_factory=deque)  # monotonic ns, cpu ns
    _started_ns: int | None = None
    _before: tuple[int, float] | None = None  # rate and cost before the last step down
    _settled: bool = False

    def decide(
        self, now_ns: int, cpu_ns: int, rss_bytes: int, frequency_hz: int
    ) -> Decision | None:
        """What to change after this reading; None to go on as it is."""
        if self._started_ns is None:
            self._started_ns = now_ns
        if now_ns - self._started_ns < GRACE_NS or self._settled:
            return None
        ratio = self._measure(now_ns, cpu_ns)
        if rss_bytes > self.memory_bytes:
            used = f"{rss_bytes / 1e6:.0f} MB of memory, over {self.memory_bytes / 1e6:.0f} MB"
            return self._lower(frequency_hz, ratio or 0.0, used)
        if ratio is None or ratio <= self.cpu_ratio:
            return None
        used = f"{ratio:.2%} of a core, over {self.cpu_ratio:.2%}"
        if self._before is not None and ratio > HELPED * self._before[1]:
            return self._take_back(frequency_hz, used)
        return self._lower(frequency_hz, ratio, used)

    def forgive(self) -> None:
        """Judge nothing of the time until now."""
        self._readings.clear()

    def _measure(self, now_ns: int, cpu_ns: int) -> float | None:
        """The share of a core used over the window; None until half of it has passed."""
        self._readings.append((now_ns, cpu_ns))
        while now_ns - self._readings[0][0] > WINDOW_NS:
            self._readings.popleft()
        since_ns, since_cpu_ns = self._readings[0]
        if now_ns - since_ns < WINDOW_NS // 2:
            return None
        return (cpu_ns - since_cpu_ns) / (now_ns - since_ns)

    def _lower(self, frequency_hz: int, ratio: float, used: str) -> Decision | None:
        lower = next((step for step in LADDER_HZ if step < frequency_hz), None)
        if lower is None:
            self._settled = True
            return None
        self._readings.clear()  # the next reading must not blame the old rate
        self._before = (frequency_hz, ratio)
        message = f"used {used}: sampling at {lower} Hz instead of {frequency_hz} Hz"
        return Decision(lower, "rate_lowered", message)

    def _take_back(self, frequency_hz: int, used: str) -> Decision:
        assert self._before is not None
        self._settled = True
        higher = self._before[0]
        message = (
            f"used {used}, at {frequency_hz} Hz as at {higher} Hz: the cost is not in the "
            f"sampling; back to {higher} Hz"
        )
        return Decision(higher, "rate_restored", message)
