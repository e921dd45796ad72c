"""Samples on their way from the rings to the archive: drained often, decoded with each flush.

What was not sampled is a gap: cores without a ring for as long as they have none, and
what a ring had no room for. Where the kernel counts losses itself (`Sampling.take_lost`),
they lie between the draining that found the ring full and the one before. Elsewhere a
ring's own record of a loss tells, which the kernel writes only when there is room again:
after that draining, so the loss lies one draining earlier than the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.archive.writer import ArchiveWriter
from nodescope.errors import SourceError
from nodescope.perf.decode import Chunk
from nodescope.quantities import format_count, format_cpu_list
from nodescope.recorder.event_log import EventLog
from nodescope.recorder.options import RecorderOptions
from nodescope.recorder.samples.novelty import Novelty, allow_frames
from nodescope.recorder.samples.profiler import Profiler
from nodescope.recorder.samples.rings import Sampling, count_samples
from nodescope.recorder.segment_length import SegmentLength
from nodescope.recorder.watches.pegged_cores import CoreWatch
from nodescope.records.event import Event
from nodescope.records.event_details import FoldingDetails
from nodescope.sources.node.identity import read_core_lives

MAX_UNDECODED_BYTES = 32 << 20
_PORTION_BYTES = 1 << 20
_FULL = "the ring was full"


@dataclass(frozen=True, slots=True)
class _Drained:
    """The content of the rings at one time; losses reported in it came after `since_ns`."""

    since_ns: int
    chunks: list[Chunk]


class Intake:
    """The samples of one run of the recorder; none at all where they are not to be had."""

    def __init__(self, options: RecorderOptions, log: EventLog, now_ns: int) -> None:
        self._options = options
        self._log = log
        self._novelty = Novelty(self._allow_frames(1))
        self._profiler = Profiler(options.places.proc, options.tick_ns, self._novelty)
        self._is_folding = False  # whether stacks of this segment or the one before were folded
        self._folded_before = 0  # samples, in the segments before this one
        self._sampling: Sampling | None = None
        self._undecoded: list[_Drained] = []  # one per draining
        self._before_ns = self._drained_ns = self._followed_ns = now_ns
        self._unsampled: dict[int | None, tuple[int, str]] = {}  # core: since when, and why
        self.samples = 0  # decoded
        self.lost = 0

    # -- what is sampled -----------------------------------------------------

    def start(self, now_ns: int) -> int:
        """Open the rings; returns of how many cores they were to be."""
        online = self._core_lives()
        size = self._options.ring_size(len(online))
        self._novelty.allow(self._allow_frames(len(online)))
        try:
            self._sampling = Sampling(self._options.frequency_hz, size, next(iter(online)))
        except SourceError as error:
            self._unsampled[None] = (now_ns, error.reason)
            message = f"no samples are taken: {error}; `nodescope doctor` says what allows them"
            self._log.event(now_ns, "source_denied", "samples", message)
        else:
            self.follow_cpus(now_ns, starting=True)
            if not self._sampling.sampler.kernel:
                message = (
                    "kernel mode may not be sampled, only user code is seen; "
                    "`nodescope doctor` says what allows it"
                )
                self._log.event(now_ns, "source_degraded", "samples", message, loud=True)
        if self._profiler.kernel_denied:
            message = f"kernel functions have no names: {self._profiler.kernel_denied}"
            self._log.event(now_ns, "source_degraded", "kallsyms", message, loud=True)
        self._tell_offline(now_ns, online)
        return len(online)

    def describe(self) -> str:
        """In a few words, what is sampled."""
        if self._sampling is None:
            return "per-core time only"
        sampler = self._sampling.sampler
        clock = "cycles" if sampler.hardware_cycles else "cpu-clock"
        cores = format_count(len(self._sampling.cpus), "core")
        return f"{cores} at {sampler.frequency_hz} Hz by {clock}"

    @property
    def is_sampling(self) -> bool:
        """Return whether there are rings at all."""
        return self._sampling is not None

    @property
    def frequency_hz(self) -> int:
        """The rate in force; 0 if nothing is sampled."""
        return self._sampling.sampler.frequency_hz if self._sampling is not None else 0

    def descriptors(self) -> Iterable[int]:
        """The rings there are now, to wait on."""
        return self._sampling.descriptors() if self._sampling is not None else ()

    def _core_lives(self) -> dict[int, int]:
        chosen = self._options.cpus
        lives = read_core_lives(self._options.places.sys)
        return {cpu: life for cpu, life in lives.items() if chosen is None or cpu in chosen}

    def _tell_offline(self, now_ns: int, online: Iterable[int]) -> None:
        """Cores that were asked for by name and are not there."""
        absent = sorted(set(self._options.cpus or ()) - set(online))
        if absent:
            message = f"not online, and sampled once they are: {_cores(absent)} of --cpu"
            self._log.event(now_ns, "source_degraded", "samples", message, loud=True)

    def follow_cpus(self, now_ns: int, *, starting: bool = False) -> bool:
        """Sample the cores that are there now; whether the rings changed."""
        if self._sampling is None:
            return False
        followed, rest = self._sampling.follow(self._core_lives())
        before, self._followed_ns = self._followed_ns, now_ns
        self._take(rest)
        for cpu in followed.removed:
            self._log.event(now_ns, "cpu_offline", f"cpu{cpu}", "the core went offline")
        for cpu in followed.added if not starting else ():
            if cpu not in self._unsampled:  # else it was there all the time
                self._log.event(now_ns, "cpu_online", f"cpu{cpu}", "the core came online")
        for cpu in set(followed.removed) & set(followed.added):
            reason = "the core was offline for a moment"
            self._log.gap(before, now_ns, "samples", reason, cpu=cpu)
        self._note_unsampled(now_ns)
        return bool(followed.added or followed.removed)

    def set_frequency(self, now_ns: int, frequency_hz: int) -> None:
        """Go on at another rate."""
        if self._sampling is not None:
            self._take(self._sampling.set_frequency(frequency_hz))
            self._before_ns, self._drained_ns = self._drained_ns, now_ns
            self._tell_lost(now_ns)
            self._note_unsampled(now_ns)

    # -- what is not ---------------------------------------------------------

    def _note_unsampled(self, now_ns: int) -> None:
        """Begin and end the gaps of cores that have no ring."""
        assert self._sampling is not None
        failed = {cpu: error.reason for cpu, error in self._sampling.failed.items()}
        for cpu, (since, reason) in list(self._unsampled.items()):
            if cpu is not None and failed.get(cpu) != reason:
                self._log.gap(since, now_ns, "samples", reason, cpu=cpu)
                del self._unsampled[cpu]
        new = sorted(cpu for cpu in failed if cpu not in self._unsampled)
        for reason in sorted({failed[cpu] for cpu in new}):
            cpus = [cpu for cpu in new if failed[cpu] == reason]
            hint = self._sampling.failed[cpus[0]].hint
            are = "is" if len(cpus) == 1 else "are"
            message = f"{_cores(cpus)} {are} not sampled: {reason}" + (f"; {hint}" if hint else "")
            only = cpus[0] if len(cpus) == 1 else None
            event = Event(now_ns, "source_degraded", "samples", message, cpu=only)
            self._log.add(event, loud=True)
        self._unsampled.update((cpu, (now_ns, failed[cpu])) for cpu in new)

    def tell_unsampled(self, now_ns: int) -> None:
        """Say of the gaps that are open that they last until now."""
        for cpu, (since, reason) in self._unsampled.items():
            self._log.gap(since, now_ns, "samples", reason, cpu=cpu)
            self._unsampled[cpu] = (now_ns, reason)

    def _tell_lost(self, now_ns: int, *, ask_all: bool = False) -> None:
        """Report samples that the kernel counted as lost since the draining before the last."""
        if self._sampling is None or not self._sampling.counts_lost:
            return
        for cpu, lost in self._sampling.take_lost(ask_all=ask_all).items():
            self._lose(self._before_ns, now_ns, cpu, lost)

    def _lose(self, from_ns: int, to_ns: int, cpu: int, lost: int) -> None:
        self.lost += lost
        self._log.gap(from_ns, to_ns, "samples", _FULL, cpu=cpu, lost=lost)

    # -- what is folded ------------------------------------------------------

    def _allow_frames(self, cores: int) -> float:
        options = self._options
        segment_ns = SegmentLength(options.segment_ns).interval_ns  # longer if it holds little
        return allow_frames(options.budget_cpu(cores), options.budget_memory_bytes, segment_ns)

    @property
    def folded(self) -> int:
        """Return how many samples have a folded stack."""
        return self._profiler.folded

    @property
    def is_diverse(self) -> bool:
        """Tell whether so many stacks are new that folding more of them would help."""
        return self._novelty.is_diverse

    def fold(self, times: int) -> None:
        """Halve the allowance of new stacks so many times, in all."""
        self._novelty.tighten(times)

    def _tell_folded(self, now_ns: int) -> None:
        """Report once that stacks are folded, until there was a segment without any."""
        if self._is_folding or self.folded == self._folded_before:
            return
        self._is_folding = True
        rate, allowed = round(self._novelty.rate), round(self._novelty.allowance)
        message = (
            f"new stacks have {rate:,} frames a second, over the {allowed:,} that the budget "
            "allows: rare ones keep their outer functions and their innermost one"
        )
        details = FoldingDetails(frames_per_s=rate, allowed_per_s=allowed)
        event = Event(now_ns, "stacks_folded", "recorder", message, details=details)
        self._log.add(event, loud=not self._folded_before)

    # -- from the rings to the archive ---------------------------------------

    def drain(self, now_ns: int, *, keep: bool = True, last: bool = False) -> list[Chunk]:
        """Empty the rings and return what they held; it waits for `append` if it is to be kept."""
        if self._sampling is None:
            return []
        chunks = self._sampling.drain()
        if keep:
            self._profiler.look_ahead(chunks)
            self._take(chunks)
        self._before_ns, self._drained_ns = self._drained_ns, now_ns
        self._tell_lost(now_ns, ask_all=last)
        return chunks

    def _take(self, chunks: list[Chunk]) -> None:
        """Keep what the rings held for the next `append`."""
        self._undecoded.append(_Drained(self._before_ns, chunks))

    @property
    def undecoded_bytes(self) -> int:
        """Return the bytes waiting for `append`."""
        return sum(len(chunk.data) for each in self._undecoded for chunk in each.chunks)

    def count_samples(self) -> int:
        """Samples taken, those that wait included: for somebody who watches."""
        return self.samples + sum(count_samples(each.chunks) for each in self._undecoded)

    def append(self, now_ns: int, writer: ArchiveWriter, watch: CoreWatch) -> None:
        """Decode what was drained, in portions that the processor's caches hold."""
        drained, self._undecoded = self._undecoded, []
        portion: list[Chunk] = []
        since_ns = self._before_ns
        for number, each in enumerate(drained, 1):
            if not portion:
                since_ns = each.since_ns
            portion.extend(each.chunks)
            size = sum(len(chunk.data) for chunk in portion)
            if portion and (size >= _PORTION_BYTES or number == len(drained)):
                self._append_portion(portion, since_ns, now_ns, writer, watch)
                portion = []
        self._tell_folded(now_ns)

    def _append_portion(
        self,
        portion: list[Chunk],
        since_ns: int,
        now_ns: int,
        writer: ArchiveWriter,
        watch: CoreWatch,
    ) -> None:
        assert self._sampling is not None
        batch, rows = self._profiler.process(portion, cgroup=self._sampling.sampler.cgroup)
        for table, columns in rows.items():
            writer.append(table, columns)
        watch.see(batch.samples)
        self.samples += len(batch.samples)
        for cpu, lost in batch.lost if not self._sampling.counts_lost else ():
            self._lose(since_ns, now_ns, cpu, lost)
        for cpu in set(batch.throttled):
            self._log.event(now_ns, "throttled", f"cpu{cpu}", "the kernel throttled sampling")
        if batch.malformed:
            self._log.gap(since_ns, now_ns, "samples", "malformed records", lost=batch.malformed)

    def unresolved(self) -> str | None:
        """Places that could not be named, by reason, as JSON; null if nothing is sampled."""
        if self._sampling is None:
            return None
        return json.dumps(self._profiler.unresolved(), sort_keys=True)

    def begin_segment(self, now_ns: int) -> None:
        """Number everything anew."""
        self._profiler.restart()
        if self._is_folding and self.folded == self._folded_before:
            self._is_folding = False
            self._log.event(now_ns, "stacks_whole", "recorder", "all stacks are whole again")
        self._folded_before = self.folded

    def forget(self, now_ns: int) -> None:
        """Drop what was drained: there was no room for it."""
        self._profiler.forget()
        self._undecoded = []
        self._before_ns = self._drained_ns = now_ns

    def close(self) -> None:
        """Give everything back."""
        self._profiler.close()
        if self._sampling is not None:
            self._sampling.close()


def _cores(cpus: list[int]) -> str:
    return f"core{'' if len(cpus) == 1 else 's'} {format_cpu_list(cpus)}"
