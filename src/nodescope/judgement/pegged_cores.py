"""Pegged cores: spans in which one core spent nearly all of its time in the kernel.

A span is a run of readings of `/proc/stat` in each of which the kernel (system calls,
interrupts, soft interrupts) had at least `READING_RATIO` of the core; the core is pegged if
the whole run has at least `SPAN_RATIO` and lasts long enough. Time that the hypervisor took
away counts for nobody. The recorder judges readings as they come (`PeggedCoreStream`), a
recording is judged by columns (`find_pegged_cores`): one definition, so one incident has the
same span and the same share live and recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from nodescope.arrays import F64, I64, Bool
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recording.core_readings import STATES, CoreReadings

if TYPE_CHECKING:  # the recorder starts without what only readers need
    from nodescope.recording.window import Window

READING_RATIO = 0.8  # of one reading: other tasks get a moment of a pegged core, too
SPAN_RATIO = 0.9  # of the whole span: a core that is merely busy in the kernel has less
PEGGED_NS = 3 * SECOND_NS  # long enough to be a symptom by itself: watchdogs of NICs wait for 5 s
TIED_NS = 2 * SECOND_NS  # beside a report that names the core or its queue, less is enough
BRIEF_NS = 1 * SECOND_NS  # at a moment somebody asks about, one whole reading is enough
# Readings are a second apart: the first and the last second of a span are seen only in part.
EDGE_NS = 1 * SECOND_NS

_KERNEL = [STATES.index(state) for state in ("system", "irq", "softirq")]
_STEAL = STATES.index("steal")


Mode: TypeAlias = Literal["kernel", "user", "softirq", "irq", "steal"]
_WORDS: dict[Mode, str] = {
    "kernel": "in the kernel",
    "user": "in user mode",
    "softirq": "in soft interrupts",
    "irq": "in interrupts",
    "steal": "taken by the hypervisor",
}


@dataclass(frozen=True, slots=True)
class PeggedCore:
    """A core that was in one mode for seconds on end: in the kernel, if nothing else is said."""

    cpu: int
    from_ns: int
    to_ns: int
    share: float  # of the mode, of these seconds
    mode: Mode = "kernel"

    @property
    def seconds(self) -> float:
        return (self.to_ns - self.from_ns) / SECOND_NS

    @property
    def window(self) -> Window:
        from nodescope.recording.window import Window

        return Window(self.from_ns, self.to_ns)

    def describe(self) -> str:
        """Return share, mode and length, in the words of every report of it."""
        length = describe_length(self.to_ns - self.from_ns)
        return f"{self.share:.0%} {_WORDS[self.mode]} for {length}"


def describe_length(length_ns: int) -> str:
    """Return the length of a span between readings: they are about a second apart."""
    return format_duration(max(1, round(length_ns / SECOND_NS)) * SECOND_NS)


@dataclass(slots=True)
class PeggedRun:
    """Readings on end that are nearly all kernel, added up; whether it is long enough is open."""

    cpu: int
    from_ns: int
    to_ns: int
    kernel_ticks: int = 0
    own_ticks: int = 0  # all the core had: without what the hypervisor took

    def add(self, to_ns: int, kernel_ticks: int, own_ticks: int) -> None:
        """Go on until a later reading."""
        self.to_ns = max(self.to_ns, to_ns)
        self.kernel_ticks += kernel_ticks
        self.own_ticks += own_ticks

    def judge(self, least_ns: int = PEGGED_NS, ratio: float = SPAN_RATIO) -> PeggedCore | None:
        """Return the pegged core, if the run is long and full enough for one."""
        share = self.kernel_ticks / max(1, self.own_ticks)
        if share < ratio or self.to_ns - self.from_ns < least_ns - EDGE_NS:
            return None
        return PeggedCore(self.cpu, self.from_ns, self.to_ns, share)


# -- as readings come ----------------------------------------------------------


class PeggedCoreStream:
    """Follows the readings of a live node: which cores are nearly all kernel, and since when."""

    def __init__(self) -> None:
        self._before: tuple[int, I64, I64] | None = None
        self.running: dict[int, PeggedRun] = {}

    def read(self, now_ns: int, cpus: I64, ticks: I64) -> list[PeggedRun]:
        """Take a reading (`ticks` are cores × `STATES`); return the runs that ended with it."""
        before, self._before = self._before, (now_ns, cpus, ticks)
        if before is None or before[1].tolist() != cpus.tolist():
            return self.end()
        kernel, own, high = _judge_readings(ticks - before[2])
        if not self.running and not high.any():
            return []
        ended = []
        for row, cpu in enumerate(cpus.tolist()):
            if high[row]:
                run = self.running.setdefault(cpu, PeggedRun(cpu, before[0], now_ns))
                run.add(now_ns, int(kernel[row]), int(own[row]))
            elif cpu in self.running:
                ended.append(self.running.pop(cpu))
        return ended

    def end(self) -> list[PeggedRun]:
        """Return what runs: it is over as far as can be known."""
        ended, self.running = list(self.running.values()), {}
        return ended

    def forget(self) -> None:
        """Begin anew after a hole in the readings."""
        self._before, self.running = None, {}


# -- of a recording --------------------------------------------------------------


def find_pegged_cores(
    readings: Iterable[CoreReadings],
    window: Window,
    least_ns: int = PEGGED_NS,
    ratio: float = SPAN_RATIO,
    seconds: KernelSeconds | None = None,
) -> list[PeggedCore]:
    """Return the pegged cores that reach into a window, by core and time.

    The readings are added to `seconds` on the way: those of a whole recording are many.
    """
    return judge_runs(_find_runs(readings, seconds), window, least_ns, ratio)


def collect_runs(readings: Iterable[CoreReadings], runs: list[PeggedRun]) -> Iterator[CoreReadings]:
    """Pass readings on, and put the runs in them into `runs`, for `judge_runs`."""
    for part in readings:
        runs += _find_runs([part])
        yield part


def judge_runs(
    runs: Iterable[PeggedRun],
    window: Window,
    least_ns: int = PEGGED_NS,
    ratio: float = SPAN_RATIO,
) -> list[PeggedCore]:
    """Return the pegged cores among runs that reach into a window, by core and time."""
    ordered = sorted(runs, key=lambda each: (each.cpu, each.from_ns))
    found = (each.judge(least_ns, ratio) for each in _join(ordered))
    return [
        each
        for each in found
        if each is not None and each.to_ns > window.from_ns and each.from_ns < window.to_ns
    ]


class KernelSeconds:
    """The share in the kernel second by second: of the core with most, and of all."""

    def __init__(self, window: Window) -> None:
        self._from_ns = window.from_ns
        length = max(1, window.length_ns // SECOND_NS)
        self.most: F64 = np.full(length, np.nan)  # not a number: not recorded
        self._total, self._count = np.zeros(length), np.zeros(length)

    def add(self, part: CoreReadings) -> None:
        """Add the readings of a part."""
        self.take(CoreSteps.of(part))

    def take(self, steps: CoreSteps) -> None:
        """Add the time between readings."""
        own = steps.own
        ratio = np.divide(steps.kernel, own, out=np.zeros(len(own)), where=own > 0)
        second = (steps.to_ns - self._from_ns) // SECOND_NS
        inside = np.flatnonzero((second >= 0) & (second < len(self.most)))
        if not len(inside):
            return
        second, ratio = second[inside], ratio[inside]
        first = int(second.min())
        span = slice(first, int(second.max()) + 1)
        second -= first
        self._total[span] += np.bincount(second, ratio)
        self._count[span] += np.bincount(second)
        np.fmax.at(self.most[span], second, ratio)

    @property
    def mean(self) -> F64:
        """Of all cores; not a number where nothing was recorded."""
        nothing = np.full(len(self.most), np.nan)
        mean: F64 = np.divide(self._total, self._count, out=nothing, where=self._count > 0)
        return mean


def _find_runs(
    readings: Iterable[CoreReadings], seconds: KernelSeconds | None = None
) -> Iterator[PeggedRun]:
    for part in readings:
        steps = CoreSteps.of(part)
        if seconds is not None:
            seconds.take(steps)
        kernel, own, cpu = steps.kernel, steps.own, steps.cpu
        high = np.flatnonzero(_is_high(kernel, own))
        if not len(high):
            continue
        first = np.flatnonzero(np.append(True, (np.diff(high) != 1) | (np.diff(cpu[high]) != 0)))
        last = np.append(first[1:], len(high)) - 1
        sums = (np.add.reduceat(ticks[high], first).tolist() for ticks in (kernel, own))
        begin, end = steps.from_ns[high[first]], steps.to_ns[high[last]]
        columns = (cpu[high[first]].tolist(), begin.tolist(), end.tolist(), *sums)
        for values in zip(*columns, strict=True):
            yield PeggedRun(*values)


def _join(runs: Sequence[PeggedRun]) -> list[PeggedRun]:
    """Join runs that touch: a segment may end in the middle of one."""
    joined: list[PeggedRun] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last is not None and last.cpu == run.cpu and run.from_ns <= last.to_ns:
            last.add(run.to_ns, run.kernel_ticks, run.own_ticks)
        else:
            joined.append(run)
    return joined


def find_followed(part: CoreReadings) -> I64:
    """Return the rows that have a next one of the same core."""
    return np.flatnonzero((np.diff(part.cpu) == 0) & (np.diff(part.time_ns) > 0))


# -- one reading -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CoreSteps:
    """The time of cores from one reading to the next, by core and time."""

    cpu: I64
    from_ns: I64
    to_ns: I64
    kernel: I64  # ticks in the kernel
    own: I64  # ticks the core had: without what the hypervisor took

    @classmethod
    def of(cls, part: CoreReadings) -> CoreSteps:
        """Take the difference of each reading and the next one of the same core."""
        kernel, own = _add_states(part.ticks)
        same = (part.cpu[1:] == part.cpu[:-1]) & (part.time_ns[1:] > part.time_ns[:-1])
        columns = (
            part.cpu[:-1],
            part.time_ns[:-1],
            part.time_ns[1:],
            np.diff(kernel),
            np.diff(own),
        )
        return cls(*(column[same] for column in columns))


def _judge_readings(used: I64) -> tuple[I64, I64, Bool]:
    """Return ticks in the kernel, ticks the core had, and whether that is nearly all kernel."""
    kernel, own = _add_states(used)
    return kernel, own, _is_high(kernel, own)


def _add_states(ticks: I64) -> tuple[I64, I64]:
    """Return ticks in the kernel, and all but those that the hypervisor took."""
    # Column by column: numpy sums rows of eight numbers at a fifth of the speed.
    kernel: I64 = sum((ticks[:, state] for state in _KERNEL), np.zeros(len(ticks), np.int64))
    others = (state for state in range(len(STATES)) if state not in (*_KERNEL, _STEAL))
    own: I64 = sum((ticks[:, state] for state in others), kernel)
    return kernel, own


def _is_high(kernel: I64, own: I64) -> Bool:
    """Decide of each reading whether it is nearly all kernel."""
    high: Bool = (own > 0) & (kernel >= READING_RATIO * own)
    return high
