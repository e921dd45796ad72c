"""The rings of all cores: opened, followed through hotplug, drained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from nodescope.errors import SourceError
from nodescope.sources.perf.decode import Chunk, split
from nodescope.sources.perf.event import Sampler, detect_sampler
from nodescope.sources.perf.ring import Ring


@dataclass(frozen=True, slots=True)
class Followed:
    """What changed when the set of cores was looked at again.

    A core that was offline meanwhile and is back is in both, removed and added.
    """

    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    failed: tuple[tuple[int, str], ...] = ()  # core, reason


class Sampling:
    """One ring per core, all sampling at one rate."""

    def __init__(self, frequency_hz: int, ring_bytes: int, first_cpu: int) -> None:
        """Raises `SourceDenied` or `SourceAbsent` where sampling is not to be had."""
        wanted = Sampler(frequency_hz=frequency_hz, watermark_bytes=ring_bytes // 2)
        self.sampler = detect_sampler(wanted, first_cpu)
        self._ring_bytes = ring_bytes
        self._rings: dict[int, Ring] = {}
        self._lives: dict[int, int] = {}  # of the cores when their rings were opened
        self._failed: set[int] = set()

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
            self._rings.pop(cpu).close()
        added, failed = [], []
        for cpu, life in lives.items():
            if cpu in self._rings:
                continue
            try:
                ring = Ring(cpu, self.sampler, self._ring_bytes)
            except SourceError as error:
                if cpu not in self._failed:
                    failed.append((cpu, error.reason))
                self._failed.add(cpu)
                continue
            ring.enable()
            self._rings[cpu] = ring
            self._lives[cpu] = life
            self._failed.discard(cpu)
            added.append(cpu)
        return Followed(tuple(added), tuple(removed), tuple(failed)), rest

    def drain(self) -> list[Chunk]:
        """What all rings hold now."""
        # All heads first: a thread's birth on one core must not be read after
        # its samples on another.
        heads = [(ring, ring.head()) for ring in self._rings.values()]
        return [split(ring.cpu, data) for ring, head in heads if (data := ring.drain(head))]

    def set_frequency(self, frequency_hz: int) -> list[Chunk]:
        """Go on at another rate; what the rings still held comes back."""
        rest = self.drain()
        lives = {cpu: self._lives[cpu] for cpu in self.cpus}
        self.close()
        # Reopened rather than PERF_EVENT_IOC_PERIOD: cpu-clock turns a
        # frequency into a period once, when it is opened.
        self.sampler = replace(self.sampler, frequency_hz=frequency_hz)
        self.follow(lives)
        return rest

    def lost(self) -> int | None:
        """Samples the kernel counts as dropped, all rings; None where it does not count."""
        counts = [ring.lost() for ring in self._rings.values()]
        return None if None in counts else sum(count or 0 for count in counts)

    def close(self) -> None:
        """Give all rings back."""
        for ring in self._rings.values():
            ring.close()
        self._rings.clear()

    @staticmethod
    def _drain_one(ring: Ring) -> Chunk:
        return split(ring.cpu, ring.drain(ring.head()))
