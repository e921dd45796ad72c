"""Cost of walking the tree of memory cgroups: one timed read at its root.

On kernels before v5.8 (and vendors' that did not take it) `memory.numa_stat` of
v1 visits every cgroup, dying ones too, once per statistic and without yielding;
up to v4.18 `memory.stat` does so as well. Later kernels answer both at once. Which
kind this is, the time on the CPU tells; the version does not. A probe must not become the
trouble it looks for: one that was slow is repeated rarely.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from nodescope.errors import SourceAbsent, source_error
from nodescope.quantities import MINUTE_NS
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy

INTERVAL_NS = MINUTE_NS
SLOW_NS = 50_000_000
SLOW_INTERVAL_NS = 10 * MINUTE_NS
_FILES = ("memory.numa_stat", "memory.stat")
_READ_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Walk:
    """One read: of which file, and how long it took, waiting for a core not counted."""

    file: str
    took_ns: int


def probe_walk(hierarchy: MemoryHierarchy) -> Walk:
    """Read one file at the root of the hierarchy and time it."""
    for name in _FILES:
        path = f"{hierarchy.mount}/{name}"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise source_error(path, error) from error
        try:
            started = time.thread_time_ns()
            while os.read(descriptor, _READ_BYTES):
                pass
            return Walk(path, time.thread_time_ns() - started)
        except OSError as error:
            raise source_error(path, error) from error
        finally:
            os.close(descriptor)
    raise SourceAbsent(f"{hierarchy.mount}/{_FILES[-1]}", "no such file at the root")


class WalkPace:
    """When the probe may run: every minute, and every ten once it was slow."""

    def __init__(self) -> None:
        self._due_ns: int | None = None
        self._slow = False

    def is_due(self, now_ns: int) -> bool:
        """Return whether the walk may run now."""
        return self._due_ns is None or now_ns >= self._due_ns

    def took(self, now_ns: int, took_ns: int) -> None:
        """Note how long it took: what was slow once is rare for good."""
        self._slow |= took_ns > SLOW_NS
        self._due_ns = now_ns + (SLOW_INTERVAL_NS if self._slow else INTERVAL_NS)
