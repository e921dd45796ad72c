"""Finds the thread that has a core to itself: from readings of the cores and their samples.

A core is looked at only while it is full, by the readings of each second; then the samples
that were just drained tell whose it is, before anything is decoded: the thread is still
there to be asked how it is scheduled. A thread that keeps a core is looked at again every
ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodescope.judgement.core_occupants import ALL_BUT_HOUSEKEEPING
from nodescope.judgement.pegged_cores import READING_RATIO
from nodescope.perf.decode import SAMPLE, Chunk
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES

OWNED_NS = 3 * SECOND_NS
_AGAIN_NS = 10 * SECOND_NS
_WAITING = [1 + STATES.index(state) for state in ("idle", "iowait")]
_STEAL = 1 + STATES.index("steal")
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_LEAST_SAMPLES = 10  # fewer say nothing about who had a second


@dataclass(slots=True)
class OwnedCore:
    """A thread that has a core to itself, and since when."""

    cpu: int
    pid: int
    tid: int
    from_ns: int
    to_ns: int
    told: bool = False

    @property
    def owned_ns(self) -> int:
        return self.to_ns - self.from_ns


class CoreOwners:
    """Follows readings and samples; hands out owners as they are found."""

    def __init__(self) -> None:
        self.blind: str | None = None  # why no owner can be found; None: it can
        self._before: npt.NDArray[np.int64] | None = None
        self._before_ns = 0
        self._full: dict[int, int] = {}  # cores, and since when
        self._owned: dict[int, OwnedCore] = {}

    def read(self, now_ns: int, cores: npt.NDArray[np.int64]) -> None:
        """Take a reading: rows as `read_cores` gives them."""
        before, self._before = self._before, cores
        since_ns, self._before_ns = self._before_ns, now_ns
        if before is None or len(before) != len(cores) or (before[:, 0] != cores[:, 0]).any():
            self._full, self._owned = {}, {}
            return
        used = cores[:, : 1 + len(STATES)] - before[:, : 1 + len(STATES)]
        passed = used[:, 1:].sum(axis=1) - used[:, _STEAL]
        busy = passed - used[:, _WAITING].sum(axis=1)
        full = cores[(passed > 0) & (busy >= READING_RATIO * passed), 0].tolist()
        self._full = {cpu: self._full.get(cpu, since_ns) for cpu in full}
        for cpu in self._owned.keys() - self._full.keys():
            del self._owned[cpu]

    def see(self, now_ns: int, chunks: Iterable[Chunk]) -> None:
        """Learn from drained samples who has the cores that are full."""
        for chunk in chunks:
            if chunk.cpu not in self._full:
                continue
            known = self._owned.get(chunk.cpu)
            if known is not None and known.told and now_ns - known.to_ns < _AGAIN_NS:
                continue
            self._see(now_ns, chunk, known)

    def _see(self, now_ns: int, chunk: Chunk, known: OwnedCore | None) -> None:
        found = find_main_thread(chunk, self._full[chunk.cpu])
        if found is None:
            self._owned.pop(chunk.cpu, None)
            return
        pid, tid, from_ns = found
        if known is not None and known.tid == tid:
            known.to_ns = now_ns
        else:
            self._owned[chunk.cpu] = OwnedCore(chunk.cpu, pid, tid, from_ns, now_ns)

    def take(self, *, whole: bool = False) -> list[OwnedCore]:
        """Return those that are new, or all of them; each has had its core for long enough."""
        found = [
            each
            for each in self._owned.values()
            if each.owned_ns >= OWNED_NS and (whole or not each.told)
        ]
        for each in found:
            each.told = True
        return found

    def list_told(self) -> list[OwnedCore]:
        """Return those that were taken and still have their cores, as far as was looked."""
        return [each for each in self._owned.values() if each.told]

    def forget(self) -> None:
        """Begin anew after a hole in the readings."""
        self._before, self._full, self._owned = None, {}, {}


def find_main_thread(chunk: Chunk, since_ns: int) -> tuple[int, int, int] | None:
    """Return process and thread that nearly all samples since then are of, and its first time."""
    words = np.frombuffer(chunk.data, np.uint64, len(chunk.data) // 8)
    at = chunk.offsets >> np.uint32(3)
    at = at[(words[at] & _LOW) == SAMPLE]
    times = words[at + 2]
    inside = times >= np.uint64(since_ns)
    tasks = words[at + 1][inside]
    if len(tasks) < _LEAST_SAMPLES:
        return None
    values, counts = np.unique(tasks, return_counts=True)
    most = int(np.argmax(counts))
    if counts[most] < ALL_BUT_HOUSEKEEPING * len(tasks):
        return None
    task = values[most]
    first = int(times[inside][tasks == task][0])
    return int(task & _LOW), int(task >> _32), first
