"""How to record: every choice a user has, with its default."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.sources.places import Places

MAX_FREQUENCY_HZ = 10_000
FLUSH_NS = 5 * SECOND_NS
SHORTEST_FLUSH_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class RecorderOptions:
    """The options of `nodescope record`."""

    archive: Path
    duration_ns: int | None = None
    frequency_hz: int = 97
    ring_bytes: int | None = None  # None: by the number of cores
    cpus: tuple[int, ...] | None = None  # None: all that are online
    core_interval_ns: int = SECOND_NS
    segment_ns: int | None = None  # None: by what a segment holds
    flush_ns: int = FLUSH_NS
    tick_ns: int = 100_000
    retention_age_ns: int = 12 * HOUR_NS
    retention_bytes: int = 4 << 30
    budget_cpu_ratio: float = 0.01
    budget_cpu_ratio_per_further_core: float = 0.0005
    budget_memory_bytes: int = 150_000_000
    places: Places = field(default_factory=Places)
    without: tuple[str, ...] = ()  # observers that are left out, by name

    def budget_cpu(self, cores: int) -> float:
        """The share of one core the recorder may use on a node of so many."""
        return self.budget_cpu_ratio + self.budget_cpu_ratio_per_further_core * max(0, cores - 1)

    def ring_size(self, cores: int) -> int:
        """Bytes of ring per core: a power of two of whole pages.

        A busy core of a build node fills 250 kB/s with the births and deaths of
        processes; on large nodes the work spreads and memory counts.
        """
        return self.ring_bytes or (1 << 20 if cores <= 16 else 512 << 10)
