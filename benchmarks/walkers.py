"""Samples of a program whose stacks are as diverse as asked for, for the rings of a large node.

The program and its stacks are those of `diversity.py`; it runs, stopped, so that `/proc` tells
what it mapped and what its threads are called.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.diversity import Walks, build_program, read_functions, running
from nodescope.arrays import I64, U64
from nodescope.perf.decode import SAMPLE

OTHERS = 0.1  # of the samples: what else ran
_USER_MODE = 2  # PERF_RECORD_MISC_USER
_THREAD = np.uint64(32)


class Walkers:
    """Samples on the stacks of walks, in the order they are to be taken."""

    def __init__(self, pid: int, walks: Walks, segment_samples: int, *, cgroup: bool) -> None:
        self._pid = pid
        self._threads = np.array(
            sorted(int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid)
        )
        self.distinct = len(walks)
        self.frames = float(np.mean(walks.lengths - 1))
        self.length = walks.lengths + 4 + cgroup
        ends = np.cumsum(self.length)
        self.at: I64 = ends - self.length
        self.words = self._lay_out(walks, cgroup=cgroup)
        chance = np.random.default_rng(98)
        self._order = walks.choose(int(segment_samples * (1 - OTHERS)), chance)
        self._taken = 0

    def _lay_out(self, walks: Walks, *, cgroup: bool) -> U64:
        """Return a record of each stack: head, pid, time, the chain's length and the chain."""
        words = np.zeros(int(self.at[-1] + self.length[-1]), np.uint64)
        head = SAMPLE | _USER_MODE << 32 | self.length * 8 << 48
        words[self.at] = head.astype(np.uint64)
        words[self.at + 3] = walks.lengths.astype(np.uint64)
        inside = np.repeat(self.at + 4 - walks.starts, walks.lengths)
        words[inside + np.arange(len(walks.words))] = walks.words
        if cgroup:
            words[self.at + self.length - 1] = np.uint64(1)
        return words

    def take(self, count: int) -> I64:
        """Return the stacks of the next samples; each segment has the same ones."""
        places = (self._taken + np.arange(count)) % len(self._order)
        self._taken += count
        return self._order[places]

    def name(self, words: U64, at: I64, runs: I64) -> None:
        """Give samples that are laid out their threads: the same one within a run."""
        threads = self._threads[runs % len(self._threads)].astype(np.uint64)
        words[at + 1] = np.uint64(self._pid) | threads << _THREAD


@contextmanager
def walking(folder: Path, stacks: int, segment_samples: int, *, cgroup: bool) -> Iterator[Walkers]:
    """Run threads on so many distinct stacks in a segment; they live as long as the context."""
    program = build_program(folder)
    walks = Walks.make(read_functions(program), stacks, seed=1)
    with running(program) as (pid,):
        os.kill(pid, signal.SIGSTOP)
        yield Walkers(pid, walks, segment_samples, cgroup=cgroup)
