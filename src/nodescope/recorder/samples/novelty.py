"""The budget of new stacks: how much of them a segment may hold, and which are folded beyond it.

A stack that was met before costs next to nothing. One that is met for the first time in a
segment is named, kept in memory until the segment is sealed, written, and laid out in the
segment's tree: so much per frame. On most nodes there are some ten thousand stacks in two
minutes; deep, recursive C++ on 96 cores has four hundred thousand, and would cost the recorder
more than its budget. Novelty therefore has an allowance of frames per second, a part of the
budgets of CPU and memory. It is saved up for half a minute of it, so that a program that
starts, and the first seconds of every segment, are recorded whole. When it is used up, new
stacks are folded (`perf/folding.py`): the rarest first, which are those met for the first
time, with the fewest samples, and among these the deepest.

How many frames a batch of new chains of addresses will be is not known before they are named:
the same functions are met at many addresses. It is estimated from the batches before.
"""

from __future__ import annotations

import numpy as np

from nodescope.perf.folding import Choice, NewChains, folded_length
from nodescope.quantities import SECOND_NS

# Measured on ring data of 96 cores with 390,000 distinct stacks of 37 frames in two minutes.
FRAME_CPU_NS = 250  # from the ring to the sealed segment
FRAME_BYTES = 13  # while its segment is open
SHARE = 0.4  # of each budget that new stacks may use
SAVED_S = 30  # seconds of the allowance that can be saved up
OUTER = (16, 8, 4, 2, 1)  # outer functions that folded stacks may keep
DIVERSE = 0.25  # of the allowance: with less, new stacks are not what costs
TIGHTEST = 2  # times the allowance may be halved
_SMOOTH = 0.3  # weight of the latest batch in estimates
_LEAST_NEWNESS = 1e-3


def allow_frames(cpu_ratio: float, memory_bytes: int, segment_ns: int) -> float:
    """Return how many frames of new stacks per second the recorder's budgets allow."""
    by_cpu = SHARE * cpu_ratio * SECOND_NS / FRAME_CPU_NS
    by_memory = SHARE * memory_bytes / FRAME_BYTES / (segment_ns / SECOND_NS)
    return min(by_cpu, by_memory)


class Novelty:
    """Decides which new stacks are kept whole; knows nothing about how they are folded."""

    def __init__(self, frames_per_s: float) -> None:
        self._tightness = 0
        self._now_ns: int | None = None
        self._asked = 0  # frames of chains, in this batch
        self._spent = 0  # frames of new stacks, in the last one
        self._newness = 1.0  # frames of new stacks per frame of new chains
        self.rate = 0.0  # frames of new stacks per second, lately
        self.allow(frames_per_s)

    @property
    def allowance(self) -> float:
        """Return how many frames of new stacks per second are allowed now."""
        return self._frames_per_s / (1 << self._tightness)

    @property
    def is_diverse(self) -> bool:
        """Tell whether new stacks use so much of the allowance that a smaller one would help."""
        return self.rate >= DIVERSE * self.allowance

    def allow(self, frames_per_s: float) -> None:
        """Start with an allowance, and all that can be saved up of it."""
        self._frames_per_s = frames_per_s
        self._saved = SAVED_S * self.allowance

    def tighten(self, times: int) -> None:
        """Halve the allowance so many times, in all."""
        self._tightness = min(times, TIGHTEST)
        self._saved = min(self._saved, SAVED_S * self.allowance)

    def advance(self, now_ns: int) -> None:
        """Go on to a batch that reaches until then: the allowance of the time since is there."""
        if self._now_ns is not None and now_ns > self._now_ns:
            elapsed_s = (now_ns - self._now_ns) / SECOND_NS
            self.rate += _SMOOTH * (self._spent / elapsed_s - self.rate)
            most = SAVED_S * self.allowance
            self._saved = min(most, self._saved + elapsed_s * self.allowance)
        self._now_ns = now_ns

    def choose(self, new: NewChains) -> Choice:
        """Keep whole what the allowance has room for, the rarest and deepest stacks last."""
        frames = int(new.lengths.sum())
        if frames * self._newness <= self._saved:
            self._asked += frames
            return Choice.all_whole(len(new))
        # Half of what there is room for, for whole stacks; the rest for what is left of others.
        room = max(0.0, self._saved) / self._newness / 2
        order = np.lexsort((new.lengths, -new.samples, ~new.met))
        whole = np.empty(len(new), np.bool_)
        whole[order] = np.cumsum(new.lengths[order]) <= room
        others = int(np.count_nonzero(~whole & ~new.met))
        outer = next((each for each in OUTER if folded_length(each) * others <= room), OUTER[-1])
        whole |= new.lengths <= folded_length(outer)
        folded = int(np.count_nonzero(~whole & ~new.met))
        self._asked += int(new.lengths[whole].sum()) + folded * folded_length(outer)
        return Choice(whole, outer)

    def spend(self, frames: int) -> None:
        """Note how many frames of new stacks a batch had."""
        if self._asked:
            self._newness += _SMOOTH * (min(1.0, frames / self._asked) - self._newness)
            self._newness = max(self._newness, _LEAST_NEWNESS)
        self._asked = 0
        self._spent = frames
        self._saved = max(self._saved - frames, -SAVED_S * self.allowance)
