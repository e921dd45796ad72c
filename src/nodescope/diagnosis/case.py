"""The recording as a diagnosis asks it: each question costs by the time it is about."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from nodescope.analysis.cores import CoreShares, derive_shares
from nodescope.archive.function_paths import find_callers
from nodescope.arrays import F64, I64
from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recording.core_readings import STATES, CoreReadings
from nodescope.recording.recording import Recording
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.table import RowType

NEARLY = 0.8
LOOKBACK_NS = HOUR_NS  # what makes trouble lies before it, also before the window
LOOKAHEAD_NS = 120 * SECOND_NS  # a loop is told after it was watched for a while


@dataclass(frozen=True, slots=True)
class Held:
    """A core that was in the kernel for seconds on end."""

    cpu: int
    from_ns: int
    to_ns: int
    share: float  # in the kernel, of these seconds

    @property
    def seconds(self) -> float:
        return (self.to_ns - self.from_ns) / SECOND_NS


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

    @cached_property
    def events(self) -> list[Event]:
        """What happened in the window, in the order of time."""
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
        return bool(self.recording.coverage(table, self.reach))

    def rows(self, kind: type[RowType], window: Window) -> list[RowType]:
        """Return the typed rows of a window, in the order of time."""
        rows = self.recording.rows(kind, window)
        return sorted(rows, key=attrgetter("time_ns"))

    def state(self, kind: type[RowType], at_ns: int) -> list[RowType]:
        """Return the last row of each subject at a moment."""
        return self.recording.state(kind, at_ns)

    # -- cores -------------------------------------------------------------

    def shares(self, window: Window) -> CoreShares:
        """Each second of each core."""
        readings = self.recording.core_readings(window)
        return derive_shares(readings, window.from_ns, window.to_ns, SECOND_NS)

    def held_cores(self, window: Window, least_s: float = 3.0, share: float = 0.9) -> list[Held]:
        """Cores that were in the kernel for at least that long without a pause."""
        found: list[Held] = []
        for part in self.recording.core_readings(window):
            same, ratio = _kernel_shares(part)
            found += _runs(part.cpu[same], part.time_ns[same], part.time_ns[same + 1], ratio)
        joined = _join(sorted(found, key=lambda each: (each.cpu, each.from_ns)))
        inside = [
            each
            for each in joined
            if each.to_ns > window.from_ns and each.from_ns < window.to_ns and each.share >= share
        ]
        # Readings are a second apart: the two at the edges saw it only in part.
        return [each for each in inside if each.seconds >= least_s - 1]

    def kernel_seconds(self, window: Window) -> tuple[F64, F64]:
        """Second by second the share in the kernel: of the busiest core, and of all."""
        length = max(1, window.length_ns // SECOND_NS)
        most, total, count = np.full(length, np.nan), np.zeros(length), np.zeros(length)
        for part in self.recording.core_readings(window):
            same, ratio = _kernel_shares(part)
            second = (part.time_ns[same + 1] - window.from_ns) // SECOND_NS
            inside = (second >= 0) & (second < length)
            np.fmax.at(most, second[inside], ratio[inside])
            np.add.at(total, second[inside], ratio[inside])
            np.add.at(count, second[inside], 1)
        mean = np.divide(total, count, out=np.full(length, np.nan), where=count > 0)
        return most, mean

    # -- samples -----------------------------------------------------------

    def stacks(self, window: Window, cpu: int | None = None) -> list[Stack]:
        """Samples by comm and kernel stack, of one core or of all."""
        counts: Counter[tuple[str, bool, tuple[str, ...]]] = Counter()
        for part in self.recording.samples(window):
            profile = part.profile if cpu is None else part.profile[part.cpu == cpu]
            for key, samples in _count_stacks(part, profile):
                counts[key] += samples
        return [Stack(*key, samples) for key, samples in counts.most_common()]

    def cgroups(self, window: Window, cpu: int, comm: str) -> Counter[str]:
        """Samples of a comm on a core by the path of their cgroup; `""` where it is not known."""
        counts: Counter[str] = Counter()
        for part in self.recording.samples(window):
            if comm not in part.comms:
                continue
            code = part.comms.index(comm)
            mine = (part.cpu == cpu) & (part.profile_comm[part.profile] == code)
            codes, samples = np.unique(part.cgroup[mine], return_counts=True)
            for each, count in zip(codes.tolist(), samples.tolist(), strict=True):
                counts[part.cgroups[each] if each >= 0 else ""] += count
        return counts

    def cores_of(self, window: Window, comm: str) -> Counter[int]:
        """The samples of a comm by core."""
        counts: Counter[int] = Counter()
        for part in self.recording.samples(window):
            if comm in part.comms:
                mine = part.profile_comm[part.profile] == part.comms.index(comm)
                cpus, samples = np.unique(part.cpu[mine], return_counts=True)
                counts.update(dict(zip(cpus.tolist(), samples.tolist(), strict=True)))
        return counts

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


def _kernel_shares(part: CoreReadings) -> tuple[I64, F64]:
    """Rows that have a next one of the same core, and the share in the kernel until it.

    Of the time the core had: what a hypervisor took of it nobody here can be blamed for.
    """
    same = np.flatnonzero((np.diff(part.cpu) == 0) & (np.diff(part.time_ns) > 0))
    used = part.ticks[same + 1] - part.ticks[same]
    total = used.sum(axis=1) - used[:, STATES.index("steal")]
    kernel = used[:, [STATES.index(state) for state in ("system", "irq", "softirq")]].sum(axis=1)
    return same, np.divide(kernel, total, out=np.zeros(len(same)), where=total > 0)


def _runs(cpu: Any, begin: Any, end: Any, ratio: Any) -> Iterator[Held]:
    """Seconds on end that a core was nearly all in the kernel: others take a moment of it."""
    high = np.flatnonzero(ratio >= NEARLY)
    if not len(high):
        return
    breaks = np.flatnonzero((np.diff(high) != 1) | (np.diff(cpu[high]) != 0)) + 1
    for run in np.split(high, breaks):
        first, last = run[0], run[-1]
        yield Held(int(cpu[first]), int(begin[first]), int(end[last]), float(ratio[run].mean()))


def _join(found: Sequence[Held]) -> list[Held]:
    """Runs that touch are one: a segment may end in the middle."""
    joined: list[Held] = []
    for each in found:
        last = joined[-1] if joined else None
        if last and last.cpu == each.cpu and each.from_ns <= last.to_ns:
            weights = (last.to_ns - last.from_ns, each.to_ns - each.from_ns)
            share = (last.share * weights[0] + each.share * weights[1]) / max(1, sum(weights))
            joined[-1] = Held(last.cpu, last.from_ns, max(last.to_ns, each.to_ns), share)
        else:
            joined.append(each)
    return joined


def _count_stacks(
    part: SampleColumns, profile: Any
) -> Iterator[tuple[tuple[str, bool, tuple[str, ...]], int]]:
    rows, counts = np.unique(profile, return_counts=True)
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
