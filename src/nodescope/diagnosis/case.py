"""The recording as a diagnosis asks it: each question costs by the time it is about."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from nodescope.analysis.cores import CoreShares, derive_shares
from nodescope.archive.function_paths import find_callers
from nodescope.arrays import Bool
from nodescope.diagnosis.finding import Absence
from nodescope.judgement.core_occupants import (
    Occupants,
    count_cgroups,
    count_commands,
    count_processes,
    describe_processes,
)
from nodescope.judgement.pegged_cores import (
    PEGGED_NS,
    SPAN_RATIO,
    KernelSeconds,
    PeggedCore,
    find_pegged_cores,
)
from nodescope.numbering import count_distinct
from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.rows import Where
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window
from nodescope.records import TABLES
from nodescope.records.event import Event
from nodescope.records.table import RowType

LOOKBACK_NS = HOUR_NS  # what makes trouble lies before it, also before the window
FURTHEST_NS = 5 * SECOND_NS  # readings further apart say nothing of the seconds between
LOOKAHEAD_NS = 120 * SECOND_NS  # a loop is told after it was watched for a while


@dataclass(frozen=True, slots=True)
class CoreLook:
    """How much was seen of the cores in some time."""

    cpus: set[int]  # whose time was read
    cores: int  # of the node, as far as known
    observed_ns: int


@dataclass(frozen=True, slots=True)
class Stack:
    """Samples of one comm with one stack."""

    comm: str
    kernel: bool
    frames: tuple[str, ...]  # of the kernel, outermost first
    samples: int


class Case:
    """One recording, one window. Symptoms are of the window; their causes may lie before it."""

    def __init__(self, recording: Recording, window: Window) -> None:
        self.recording = recording
        self.window = window
        # Not what logs remember of the time before: nobody looked at the node then.
        self._start_ns = recording.extent.from_ns if recording.parts else window.from_ns
        start_ns = max(window.from_ns - LOOKBACK_NS, min(window.from_ns, self._start_ns))
        self.reach = Window(start_ns, window.to_ns + LOOKAHEAD_NS)
        self._kernel_seconds: dict[Window, KernelSeconds] = {}

    @cached_property
    def events(self) -> list[Event]:
        """Return the events of the window, in order of time."""
        return _between(self._events_in_reach, self.window)

    @cached_property
    def _events_in_reach(self) -> list[Event]:
        return self.recording.events(self.reach)

    def events_of(self, *kinds: str, within: Window | None = None) -> list[Event]:
        """Events of some kinds, of the window or `within` another in reach."""
        events = _between(self._events_in_reach, self.window if within is None else within)
        return [event for event in events if event.kind in kinds]

    def looked_back_ns(self, at_ns: int) -> int:
        """How much of the hour before a moment was recorded."""
        return min(LOOKBACK_NS, max(0, at_ns - self._start_ns))

    # -- tables ------------------------------------------------------------

    def recorded(self, table: str) -> bool:
        """Decide whether the window has any row of a table."""
        return self.recording.has(table, self.window)

    def observed(self, table: str) -> bool:
        """Decide whether anybody looked: an observer that had nothing to tell is not missing."""
        return table in TABLES and bool(self.recording.coverage(table, self.reach))

    def rows(
        self, kind: type[RowType], window: Window, where: Where | None = None
    ) -> list[RowType]:
        """Return the typed rows of a window, in the order of time; of one subject with `where`."""
        rows = self.recording.rows(kind, window, where)
        return sorted(rows, key=attrgetter("time_ns"))

    def state(self, kind: type[RowType], at_ns: int) -> list[RowType]:
        """Return the last row of each subject at a moment."""
        return self.recording.state(kind, at_ns)

    def absence(self, table: str, window: Window) -> Absence:
        """Return the claim that something was not there, with how much of the time was seen."""
        return Absence(table, window, self.recording.coverage(table, window).observed_ns)

    # -- cores -------------------------------------------------------------

    def shares(self, window: Window) -> CoreShares:
        """Each second of each core."""
        readings = self.recording.core_readings(window)
        return derive_shares(readings, window.from_ns, window.to_ns, SECOND_NS)

    def look_at_cores(self, window: Window) -> CoreLook:
        """Return of which cores time was read in a window, and in how much of the window."""
        times: set[int] = set()
        cpus: set[int] = set()
        for part in self.recording.core_readings(window):
            near = (part.time_ns >= window.from_ns - FURTHEST_NS) & (
                part.time_ns <= window.to_ns + FURTHEST_NS
            )
            times.update(np.unique(part.time_ns[near]).tolist())
            cpus.update(np.unique(part.cpu[near]).tolist())
        observed_ns = sum(
            max(0, min(after, window.to_ns) - max(before, window.from_ns))
            for before, after in pairwise(sorted(times))
            if after - before <= FURTHEST_NS
        )
        known = self.recording.node.get("cpus")
        most = max(len(cpus), self.recording.count_cores(self.reach))
        return CoreLook(cpus, max(most, known) if isinstance(known, int) else most, observed_ns)

    def pegged_cores(
        self, window: Window, least_ns: int = PEGGED_NS, ratio: float = SPAN_RATIO
    ) -> list[PeggedCore]:
        """Return the pegged cores that reach into a window."""
        readings = self.recording.core_readings(window)
        seconds = None
        if window.from_ns <= self.window.from_ns and window.to_ns >= self.window.to_ns:
            # The readings of a whole recording are many: they are read once for both.
            seconds = self._kernel_seconds[self.window] = KernelSeconds(self.window)
        return find_pegged_cores(readings, window, least_ns, ratio, seconds)

    def kernel_seconds(self, window: Window) -> KernelSeconds:
        """Return second by second the share in the kernel: of the busiest core, and of all."""
        found = self._kernel_seconds.get(window)
        if found is None:
            found = self._kernel_seconds[window] = KernelSeconds(window)
            for part in self.recording.core_readings(window):
                found.add(part)
        return found

    # -- samples -----------------------------------------------------------

    def stacks(self, window: Window, cpu: int | None = None) -> list[Stack]:
        """Samples by comm and kernel stack, of one core or of all."""
        counts: Counter[tuple[str, bool, tuple[str, ...]]] = Counter()
        for part in self.recording.samples(window):
            profile = part.profile if cpu is None else part.profile[part.cpu == cpu]
            for key, samples in _count_stacks(part, profile):
                counts[key] += samples
        return [Stack(*key, samples) for key, samples in counts.most_common()]

    def commands_on(self, window: Window, cpu: int) -> Occupants[str]:
        """Return who had a core, by command."""
        return count_commands(self.recording.samples(window), cpu)

    def name_processes(self, window: Window, cpu: int, comm: str) -> str:
        """Return a command that had a core, with the process that it was, if it was one."""
        return describe_processes(comm, count_processes(self.recording.samples(window), cpu, comm))

    def cgroups_on(self, window: Window, cpu: int, comm: str) -> Occupants[str]:
        """Return in which cgroups a command was on a core."""
        return count_cgroups(self.recording.samples(window), cpu, comm)

    def cgroups_inside(self, window: Window, functions: Set[str]) -> Counter[str]:
        """Count samples by cgroup, of those with one of some functions in their stack."""
        counts: Counter[str] = Counter()
        for part in self.recording.samples(window):
            inside = find_inside(part, functions)
            codes, numbers = count_distinct(part.cgroup[inside[part.profile]])
            for code, samples in zip(codes.tolist(), numbers.tolist(), strict=True):
                counts[part.cgroups[code] if code >= 0 else ""] += samples
        return counts

    def sampled_ns(self, window: Window) -> int:
        """Return in how much of a window samples were taken."""
        return self.recording.coverage("samples", window).observed_ns

    def busy_share(self, window: Window, cpu: int | None = None) -> float | None:
        """How busy the node was on average, or one core."""
        readings = self.recording.core_readings(window)
        only = None if cpu is None else (cpu,)
        busy = derive_shares(readings, window.from_ns, window.to_ns, SECOND_NS, only).busy
        return None if np.isnan(busy).all() else float(np.nanmean(busy))


def _between(events: Sequence[Event], window: Window) -> list[Event]:
    first, last = (
        bisect_left(events, moment, key=lambda event: event.time_ns)
        for moment in (window.from_ns, window.to_ns)
    )
    return list(events[first:last])


def find_inside(part: SampleColumns, functions: Set[str]) -> Bool:
    """Return for each row of `profile` whether its stack has one of some functions.

    A compiler's copy of a function (`foo.isra.0`) is the function.
    """
    names = (name.split(".", 1)[0] in functions for name in part.frame_names)
    wanted = np.fromiter(names, bool)
    inside = np.zeros(len(part.profile_stack), bool)
    if not wanted.any():
        return inside
    callers = find_callers(part.depth)
    has = wanted[part.frame]
    for at in range(len(has)):  # callers stand before those they call
        if not has[at] and callers[at] >= 0:
            has[at] = has[callers[at]]
    known = part.profile_stack >= 0
    inside[known] = has[part.profile_stack[known]]
    return inside


def _count_stacks(
    part: SampleColumns, profile: Any
) -> Iterator[tuple[tuple[str, bool, tuple[str, ...]], int]]:
    rows, counts = count_distinct(profile)
    if not len(rows):
        return
    callers = find_callers(part.depth)
    for row, samples in zip(rows.tolist(), counts.tolist(), strict=True):
        frames: list[str] = []
        at = int(part.profile_stack[row])
        while at >= 0:
            frame = int(part.frame[at])
            if part.frame_kernel[frame]:
                frames.append(part.frame_names[frame])
            at = int(callers[at])
        comm = part.comms[int(part.profile_comm[row])]
        yield (comm, bool(part.profile_kernel[row]), tuple(reversed(frames))), samples
