"""Threads that serve packets and are hardly let run: on which cores.

Judged over two seconds at a time. The kernel lets such a thread run for a moment
once a second; a reading may fall into that moment each time, so single readings
tell nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from nodescope.quantities import SECOND_NS
from nodescope.sources.kernel_files import read_text
from nodescope.sources.network.napi_threads import (
    ThreadTimes,
    list_kernel_threads,
    read_thread_times,
)

_FIND_NS = 10 * SECOND_NS
# The kernel leaves ordinary threads 5 % of a core that a real-time task wants whole. A
# thread that got no more than about that, and wanted more, is held up.
_RAN_RATIO = 0.06
_WAITED_RATIO = 0.8
_SPAN_NS = 2 * SECOND_NS
_LEAST_NS = 1_500_000_000

Reading = tuple[int, ThreadTimes]  # when, and what was read


class NapiWatch:
    """Looks for the threads now and then, and at each of them each time."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._find_at_ns = 0
        self._others: set[int] = set()  # kernel threads that serve no packets
        self._names: dict[int, str] = {}
        self._readings: dict[int, deque[Reading]] = {}

    def find_held_up(self, now_ns: int) -> dict[int, list[str]]:
        """By core, the threads that waited for it nearly all of the last two seconds."""
        if now_ns >= self._find_at_ns:
            self._find(now_ns)
        held: dict[int, list[str]] = {}
        for pid, name in list(self._names.items()):
            times = read_thread_times(self._proc, pid)
            if times is None:
                del self._names[pid]
                self._readings.pop(pid, None)
                continue
            readings = self._readings.setdefault(pid, deque())
            readings.append((now_ns, times))
            while len(readings) > 2 and now_ns - readings[1][0] >= _SPAN_NS:
                readings.popleft()
            if is_held_up(readings):
                held.setdefault(times.cpu, []).append(name)
        return held

    def _find(self, now_ns: int) -> None:
        """Only threads that were not seen before are asked for their name."""
        self._find_at_ns = now_ns + _FIND_NS
        alive = set(list_kernel_threads(self._proc))
        self._others &= alive
        for pid in alive - self._others - self._names.keys():
            name = read_text(f"{self._proc}/{pid}/comm") or ""
            if name.startswith("napi/"):
                self._names[pid] = name
            else:
                self._others.add(pid)


def is_held_up(readings: Sequence[Reading]) -> bool:
    """Return whether a thread was runnable nearly all the while and hardly ran."""
    (start, first), (end, last) = readings[0], readings[-1]
    passed = end - start
    if passed < _LEAST_NS or last.ran_ns - first.ran_ns > _RAN_RATIO * passed:
        return False
    waited = last.waited_ns - first.waited_ns + _waits_since(readings)
    return waited >= _WAITED_RATIO * passed


def _waits_since(readings: Sequence[Reading]) -> int:
    """At most how long the wait is that is not over: the kernel counts a wait when it ends."""
    end, last = readings[-1]
    since = end
    if not last.runnable:
        return 0
    for time_ns, times in reversed(readings):
        since = time_ns
        if not times.runnable or times.ran_ns != last.ran_ns:
            break  # it began to wait after this one
    return end - since
