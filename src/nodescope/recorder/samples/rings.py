"""The rings of all cores: opened, followed through hotplug, drained.

What a ring had no room for the kernel counts (Linux 6.0). Asking it interrupts the core,
which costs, and waits for one that is held with interrupts off; so it is asked only of
rings that were found half full, and of all when they are closed. A loss needs a full ring.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nodescope.errors import SourceError
from nodescope.perf.decode import SAMPLE, Chunk, split
from nodescope.perf.event import Sampler, detect_sampler
from nodescope.perf.ring import Ring


@dataclass(frozen=True, slots=True)
class Followed:
    """The changes found when the set of cores was read again.

    A core that was offline meanwhile and is back is in both, removed and added.
    """

    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()


class Sampling:
    """One ring per core, all sampling at one rate."""

    def __init__(self, frequency_hz: int, ring_bytes: int, first_cpu: int) -> None:
        """Raises `SourceDenied` or `SourceAbsent` where sampling is not to be had."""
        wanted = Sampler(frequency_hz=frequency_hz, watermark_bytes=ring_bytes // 2)
        self.sampler = detect_sampler(wanted, first_cpu)
        self._ring_bytes = ring_bytes
        self._rings: dict[int, Ring] = {}
        self._lives: dict[int, int] = {}  # of the cores when their rings were opened
        self._full: set[int] = set()  # cores whose rings were half full since they were asked
        self._lost: dict[int, int] = {}  # what each ring had lost when it was asked
        self._untold: dict[int, int] = {}  # losses that `take_lost` has not handed out
        self.failed: dict[int, SourceError] = {}  # cores that have no ring, and why

    @property
    def cpus(self) -> list[int]:
        """The cores being sampled."""
        return sorted(self._rings)

    def descriptors(self) -> dict[int, int]:
        """File descriptor → core, to wait on."""
        return {ring.descriptor: cpu for cpu, ring in self._rings.items()}

    def follow(self, lives: Mapping[int, int]) -> tuple[Followed, list[Chunk]]:
        """Sample exactly these cores from now on; what removed rings still held comes back.

        `lives` are as `read_core_lives` tells them: the ring of a core that was offline
        stays silent for ever, so it is opened anew.
        """
        removed = [cpu for cpu in self._rings if lives.get(cpu) != self._lives[cpu]]
        rest = [self._drain_one(self._rings[cpu]) for cpu in removed]
        for cpu in removed:
            self._close_one(cpu)
        self.failed = {cpu: error for cpu, error in self.failed.items() if cpu in lives}
        return Followed(tuple(self._open(lives)), tuple(removed)), rest

    def _open(self, lives: Mapping[int, int]) -> list[int]:
        """Open the rings that these cores do not have: the cores that have one now."""
        added = []
        for cpu, life in lives.items():
            if cpu in self._rings:
                continue
            try:
                ring = Ring(cpu, self.sampler, self._ring_bytes)
            except SourceError as error:
                self.failed[cpu] = error
                continue
            ring.enable()
            self._rings[cpu] = ring
            self._lives[cpu] = life
            self.failed.pop(cpu, None)
            added.append(cpu)
        return added

    def drain(self) -> list[Chunk]:
        """Drain all rings."""
        # All heads first: a thread's birth on one core must not be read after
        # its samples on another.
        heads = [(ring, ring.head()) for ring in self._rings.values()]
        chunks = [split(ring.cpu, data) for ring, head in heads if (data := ring.drain(head))]
        self._full.update(chunk.cpu for chunk in chunks if 2 * len(chunk.data) >= self._ring_bytes)
        return chunks

    def set_frequency(self, frequency_hz: int) -> list[Chunk]:
        """Go on at another rate; what the rings still held comes back."""
        rest = self.drain()
        lives = {cpu: self._lives[cpu] for cpu in self.cpus}
        self.close()
        # Reopened rather than PERF_EVENT_IOC_PERIOD: cpu-clock turns a
        # frequency into a period once, when it is opened.
        self.sampler = replace(self.sampler, frequency_hz=frequency_hz)
        self._open(lives)
        return rest

    @property
    def counts_lost(self) -> bool:
        """Return whether the kernel counts dropped samples; else only ring records report them."""
        return self.sampler.lost_counter

    def take_lost(self, *, ask_all: bool = False) -> dict[int, int]:
        """Records that were dropped since the last call, by core, as the kernel counts them."""
        for cpu in self.cpus if ask_all else self._full & self._rings.keys():
            self._ask_lost(cpu)
        self._full.clear()
        untold, self._untold = self._untold, {}
        return untold

    def _ask_lost(self, cpu: int) -> None:
        try:
            lost = self._rings[cpu].lost()
        except (OSError, struct.error):
            return  # the core went offline this moment
        rise = (lost or 0) - self._lost.get(cpu, 0)
        if rise > 0:
            self._lost[cpu] = self._lost.get(cpu, 0) + rise
            self._untold[cpu] = self._untold.get(cpu, 0) + rise

    def close(self) -> None:
        """Give all rings back; what they lost is told by the next `take_lost`."""
        for cpu in self.cpus:
            self._close_one(cpu)

    def _close_one(self, cpu: int) -> None:
        self._ask_lost(cpu)
        self._lost.pop(cpu, None)
        self._rings.pop(cpu).close()

    @staticmethod
    def _drain_one(ring: Ring) -> Chunk:
        return split(ring.cpu, ring.drain(ring.head()))


def count_samples(chunks: list[Chunk]) -> int:
    """How many samples are among the records."""
    return sum(
        int(np.count_nonzero(np.frombuffer(chunk.data, np.uint32)[chunk.offsets >> 2] == SAMPLE))
        for chunk in chunks
    )
