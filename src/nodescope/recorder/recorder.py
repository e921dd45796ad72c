"""The recorder's loop: read every source when it is due, append, flush, seal.

One thread, woken by the earliest deadline or by a ring that is half full. A
source that fails becomes a `gap` and the rest goes on. A full disk pauses
recording: what was appended stays pending, what comes meanwhile is a gap.
"""

from __future__ import annotations

import json
import select
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import Clock, SystemClock, read_pair
from nodescope.errors import ArchiveError, ArchiveFull, SourceError, UsageError
from nodescope.quantities import format_duration
from nodescope.recorder import footprint
from nodescope.recorder.budget import Budget
from nodescope.recorder.core_times import CoreTimes
from nodescope.recorder.freezing import Freezing
from nodescope.recorder.log import EventLog
from nodescope.recorder.notify import Notifier
from nodescope.recorder.observation import Observer
from nodescope.recorder.observing import Observing
from nodescope.recorder.options import SECOND_NS, RecorderOptions
from nodescope.recorder.pace import ClockWatch, Pace
from nodescope.recorder.profiler import Profiler
from nodescope.recorder.readers import Readers
from nodescope.recorder.sampling import Sampling
from nodescope.sources.node import read_core_lives
from nodescope.sources.own_cost import read_own_cost
from nodescope.sources.perf.decode import Chunk

_DRAIN_NS = 2 * SECOND_NS  # sooner when a ring is half full
_READ_NS = SECOND_NS  # how often to flush while somebody reads along
_EARLY_NS = 20_000_000  # at most; less where the cores are read often
_MAX_UNDECODED_BYTES = 32 << 20
_PORTION_BYTES = 1 << 20
_GROWTH_BYTES = 12 << 20  # of resident memory, until what is free of it is given back


@dataclass(frozen=True, slots=True)
class Progress:
    """What a person watching wants to know."""

    elapsed_ns: int
    samples: int
    lost: int
    cpu_ratio: float
    rss_bytes: int
    written_bytes: int
    frequency_hz: int
    paused: bool


class Recorder:
    """Records until stopped. `run` may be called once."""

    def __init__(
        self,
        options: RecorderOptions,
        writer: ArchiveWriter,
        *,
        clock: Clock | None = None,
        notifier: Notifier | None = None,
        observers: Mapping[str, Observer] | None = None,
        report: Callable[[str], None] = lambda message: None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._options = options
        self._writer = writer
        self._clock = clock or SystemClock()
        self._notifier = notifier or Notifier({})
        self._show = progress
        self._stopping = False
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._poller = select.poll()
        now = self._clock.monotonic_ns()
        self._started_ns = self._reported_ns = now
        self._started_cpu_ns = read_own_cost(options.places.proc).cpu_ns
        self._log = EventLog(report)
        self._observing = Observing(observers or {}, self._log, self._clock)
        self._profiler = Profiler(options.places.proc, options.tick_ns)
        self._sampling: Sampling | None = None
        self._budget = Budget(0.0, options.budget_memory_bytes)
        self._clock_watch = ClockWatch(read_pair(self._clock))
        self._freezing = Freezing(writer.root)
        self._readers = Readers()
        self._core_pace = Pace(options.core_interval_ns, now)
        drain_ns = self._notifier.pace_ns(min(_DRAIN_NS, options.flush_ns))
        self._drain_pace = Pace(drain_ns, now + drain_ns)
        self._flush_pace = Pace(options.flush_ns, now + options.flush_ns)
        self._segment_pace = Pace(options.segment_ns, now + options.segment_ns)
        self._undecoded: list[list[Chunk]] = []  # one list per draining
        self._core_times = CoreTimes(options.places.proc, options.core_interval_ns, now, self._log)
        self._drained_ns = self._followed_ns = now
        self._samples = self._lost = self._written = self._flat_bytes = 0
        self._flushed_ns = now
        self._paused_ns: int | None = None

    # -- life --------------------------------------------------------------

    def run(self) -> None:
        """Record until the duration is over, `stop` is called, or a signal comes."""
        with self._signals():
            self._start()
            try:
                while not self._is_over():
                    woken = self._wait()
                    self._work(self._clock.monotonic_ns(), woken)
            finally:
                self._finish()

    def stop(self) -> None:
        """End cleanly; safe to call from a signal handler or another thread."""
        self._stopping = True
        try:
            self._waker.send(b"\0")
        except OSError:
            pass  # a wake-up is already on its way

    @contextmanager
    def _signals(self) -> Iterator[None]:
        previous = {
            number: signal.signal(number, lambda *_: self.stop())
            for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _is_over(self) -> bool:
        duration = self._options.duration_ns
        elapsed = self._clock.monotonic_ns() - self._started_ns
        return self._stopping or (duration is not None and elapsed >= duration)

    def _start(self) -> None:
        self._watch_rings()
        now = self._clock.monotonic_ns()
        if self._writer.recorded_to_ns is not None:
            killed = " and had been killed" if self._writer.recovered else ""
            reason = f"the recorder was not running{killed}"
            self._log.gap(self._writer.recorded_to_ns, now, "all", reason)
        online = list(self._core_lives())
        self._budget.cpu_ratio = self._options.budget_cpu(len(online))
        try:
            self._sampling = Sampling(
                self._options.frequency_hz, self._options.ring_size(len(online)), online[0]
            )
        except SourceError as error:
            self._log.gap(now, now, "samples", error.reason)
            message = f"no samples are taken: {error}; `nodescope doctor` says what allows them"
            self._log.event(now, "source_denied", "samples", message, loud=True)
        else:
            self._follow_cpus(now, starting=True)
            if not self._sampling.sampler.kernel:
                self._log.event(
                    now,
                    "source_degraded",
                    "samples",
                    "kernel mode may not be sampled, only user code is seen; "
                    "`nodescope doctor` says what allows it",
                    loud=True,
                )
        if self._profiler.kernel_denied:
            self._log.event(
                now,
                "source_degraded",
                "kallsyms",
                f"kernel functions have no names: {self._profiler.kernel_denied}",
                loud=True,
            )
        self._log.event(now, "recorder_started", "recorder", self._describe())
        self._observing.align(self._core_pace.due_ns)
        footprint.let_go(self._options.places.proc, collect=True)
        self._notifier.ready(self._describe())
        self._notifier.alive()

    def _describe(self) -> str:
        if self._sampling is None:
            return "per-core time only"
        sampler = self._sampling.sampler
        clock = "cycles" if sampler.hardware_cycles else "cpu-clock"
        return f"{len(self._sampling.cpus)} cores at {sampler.frequency_hz} Hz by {clock}"

    def _finish(self) -> None:
        self._notifier.stopping("sealing the open segment")
        now = self._clock.monotonic_ns()
        self._log.event(now, "recorder_stopped", "recorder", "stopped")
        self._drain(now)
        self._core_times.read(now, paused=self._paused_ns is not None)
        self._core_times.watch.end()
        self._observing.close(now)
        self._flush(now)
        self._profiler.close()
        if self._sampling is not None:
            self._sampling.close()
        self._writer.close()
        self._readers.close()
        self._notifier.close()
        self._waker.close()
        self._woken.close()

    # -- the loop ----------------------------------------------------------

    def _wait(self) -> bool:
        """Sleep until the next deadline, a half-full ring, or a signal: whether a ring woke us."""
        paces = (self._core_pace, self._drain_pace, self._flush_pace, self._segment_pace)
        due = min(pace.due_ns for pace in paces)
        if self._observing.due_ns is not None:
            due = min(due, self._observing.due_ns)
        if self._options.duration_ns is not None:
            due = min(due, self._started_ns + self._options.duration_ns)
        timeout = max(0, due - self._clock.monotonic_ns())
        ready = self._poller.poll(-(-timeout // 1_000_000))
        if any(events & select.POLLHUP for _, events in ready):
            self._follow_cpus(self._clock.monotonic_ns())
        return bool(ready)

    def _watch_rings(self) -> None:
        """Wait on the rings there are now."""
        self._poller = select.poll()
        self._poller.register(self._woken.fileno(), select.POLLIN)
        for descriptor in self._sampling.descriptors() if self._sampling is not None else ():
            self._poller.register(descriptor, select.POLLIN)

    def _work(self, now: int, woken: bool) -> None:
        """Do what is due, or will be in a moment: waking up twice costs more than being early."""
        soon = now + min(_EARLY_NS, self._options.core_interval_ns // 8)
        if self._core_pace.take(soon) is not None:
            self._core_times.read(now, paused=self._paused_ns is not None)
        self._observing.work(now, soon, self._budget.cpu_ratio)
        if self._drain_pace.take(soon) is not None or woken:
            self._drain(now)
            self._watch_clock()
            self._notifier.alive()
        undecoded = sum(len(chunk.data) for chunks in self._undecoded for chunk in chunks)
        if self._flush_pace.take(soon) is not None or undecoded > _MAX_UNDECODED_BYTES:
            self._flush(now)
            self._keep_budget(now)
            self._follow_cpus(now)
        elif soon - self._flushed_ns >= _READ_NS and self._readers.lately(now):
            self._drain(now)
            self._flush(now)
            self._budget.forgive()  # what reading along costs is wanted
        if self._segment_pace.take(soon) is not None:
            self._seal(now)

    def _freeze(self, now: int) -> None:
        """Keep what surrounds the serious events that came, whatever retention says."""
        serious = self._log.take_serious()
        if not serious:
            return
        try:
            for event in self._freezing.freeze(serious, read_pair(self._clock)):
                self._log.add(event)
        except ArchiveError as error:
            message = f"what surrounds serious events is not kept: {error}"
            self._log.event(now, "source_degraded", "freezing", message, loud=True)

    def _core_lives(self) -> dict[int, int]:
        chosen = self._options.cpus
        lives = read_core_lives(self._options.places.sys)
        return {cpu: life for cpu, life in lives.items() if chosen is None or cpu in chosen}

    def _follow_cpus(self, now: int, *, starting: bool = False) -> None:
        if self._sampling is None:
            return
        followed, rest = self._sampling.follow(self._core_lives())
        before, self._followed_ns = self._followed_ns, now
        self._undecoded.append(rest)
        if followed.added or followed.removed:
            self._watch_rings()
        for cpu in followed.removed:
            self._log.event(now, "cpu_offline", f"cpu{cpu}", "the core went offline", loud=True)
        for cpu in followed.added if not starting else ():
            self._log.event(now, "cpu_online", f"cpu{cpu}", "the core came online")
        for cpu in set(followed.removed) & set(followed.added):
            reason = "the core was offline for a moment"
            self._log.gap(before, now, "samples", reason, cpu=cpu)
        for cpu, reason in followed.failed:
            self._log.gap(now, now, "samples", reason, cpu=cpu)

    def _drain(self, now: int) -> None:
        if self._sampling is None:
            return
        chunks = self._sampling.drain()
        if self._paused_ns is None:
            self._profiler.look_ahead(chunks)
            self._undecoded.append(chunks)
        if self._show is not None:
            self._show(self._progress(now))

    def _watch_clock(self) -> None:
        pair = read_pair(self._clock)
        step = self._clock_watch.step_ns(pair)
        if step:
            way = "forward" if step > 0 else "back"
            self._log.event(
                pair.monotonic_ns,
                "clock_step",
                "wall clock",
                f"the wall clock was set {way} by {format_duration(abs(step))}",
                loud=True,
            )
            self._append_heartbeat()

    # -- to the archive ----------------------------------------------------

    def _flush(self, now: int) -> None:
        if self._paused_ns is not None and not self._resume(now):
            return
        try:
            self._append_samples(now)
            for event in self._core_times.watch.take_events():
                self._log.add(event)
            self._freeze(now)
            cores = self._core_times.take_rows()
            if cores is not None:
                self._writer.append("cores", cores)
            self._append_heartbeat()
            for table, columns in self._observing.take_rows().items():
                self._append_observed(now, table, columns)
            for table, columns in self._log.take_new_rows().items():
                self._append_observed(now, table, columns)
            self._written += self._writer.flush()
            self._flushed_ns = now
            self._readers.watch(self._writer.open_directory)
        except ArchiveFull as error:
            self._pause(now, error)

    def _append_observed(self, now: int, table: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Rows that do not fit their table cost themselves, not the recording."""
        try:
            self._writer.append(table, columns)
        except (UsageError, ValueError) as error:
            rows = len(next(iter(columns.values())))
            self._log.gap(now, now, table, f"a defect of ours: {error}", lost=rows, loud=True)

    def _append_samples(self, now: int) -> None:
        """Decode what was drained, in portions that the processor's caches hold."""
        drained, self._undecoded = self._undecoded, []
        portion: list[Chunk] = []
        for number, chunks in enumerate(drained, 1):
            portion.extend(chunks)
            size = sum(len(chunk.data) for chunk in portion)
            if portion and (size >= _PORTION_BYTES or number == len(drained)):
                self._append_portion(portion, now)
                portion = []
        self._drained_ns = now

    def _append_portion(self, portion: list[Chunk], now: int) -> None:
        assert self._sampling is not None
        batch, rows = self._profiler.process(portion, cgroup=self._sampling.sampler.cgroup)
        for table, columns in rows.items():
            self._writer.append(table, columns)
        self._core_times.watch.see(batch.samples)
        self._samples += len(batch.samples)
        for cpu, lost in batch.lost:
            self._lost += lost
            self._log.gap(self._drained_ns, now, "samples", "the ring was full", cpu=cpu, lost=lost)
        for cpu in set(batch.throttled):
            self._log.event(now, "throttled", f"cpu{cpu}", "the kernel throttled sampling")
        if batch.malformed:
            self._log.gap(
                self._drained_ns, now, "samples", "malformed records", lost=batch.malformed
            )

    def _append_heartbeat(self) -> None:
        pair = read_pair(self._clock)
        cost = read_own_cost(self._options.places.proc)
        self._writer.append(
            "heartbeats",
            {
                "time_ns": [pair.monotonic_ns],
                "wall_ns": [pair.wall_ns],
                "cpu_ns": [cost.cpu_ns],
                "rss_bytes": [cost.rss_bytes],
                "written_bytes": [self._written],
                "samples": [self._samples],
                "lost": [self._lost],
                "late_ns": [self._core_times.take_late_ns()],
                "frequency_hz": [self._frequency_hz()],
                "unresolved": [self._unresolved()],
            },
        )

    def _unresolved(self) -> str | None:
        if self._sampling is None:
            return None
        return json.dumps(self._profiler.unresolved(), sort_keys=True)

    def _frequency_hz(self) -> int:
        return self._sampling.sampler.frequency_hz if self._sampling is not None else 0

    def _seal(self, now: int) -> None:
        self._flush(now)
        if self._paused_ns is not None:
            return
        footprint.let_go(self._options.places.proc)  # sealing needs room of its own
        try:
            self._writer.seal_segment()
        except ArchiveFull as error:
            self._pause(now, error)
            return
        self._readers.forget()
        self._profiler.restart()
        self._observing.begin_segment()
        footprint.let_go(self._options.places.proc, collect=True)
        self._append_heartbeat()  # a segment's times are placed by its own clock pairs

    def _pause(self, now: int, error: ArchiveFull) -> None:
        self._paused_ns = now
        self._log.event(now, "paused", "archive", f"recording is paused: {error.reason}", loud=True)
        self._notifier.status("paused: the disk is full")

    def _resume(self, now: int) -> bool:
        """Whether there is room again; then what was pending is written first."""
        assert self._paused_ns is not None
        if not self._writer.has_room():
            return False
        try:
            self._written += self._writer.flush()
        except ArchiveFull:
            return False
        self._log.gap(self._paused_ns, now, "all", "no room on the device")
        self._log.event(now, "resumed", "archive", "there is room again", loud=True)
        self._notifier.status(self._describe())
        self._profiler.forget()
        self._observing.forget()
        self._core_times.forget()
        self._undecoded = []
        self._paused_ns = None
        self._drained_ns = now
        return True

    # -- its own cost ------------------------------------------------------

    def _keep_budget(self, now: int) -> None:
        if self._sampling is None:
            return
        cost = read_own_cost(self._options.places.proc)
        if cost.rss_bytes > self._flat_bytes + _GROWTH_BYTES:
            footprint.trim()  # not code: it would only come back, and be over again
            cost = read_own_cost(self._options.places.proc)
            self._flat_bytes = cost.rss_bytes
        decision = self._budget.decide(now, cost.cpu_ns, cost.rss_bytes, self._frequency_hz())
        if decision is None:
            return
        self._log.event(now, decision.kind, "recorder", decision.message, loud=True)
        self._undecoded.append(self._sampling.set_frequency(decision.frequency_hz))
        self._watch_rings()
        self._append_heartbeat()

    def _progress(self, now: int) -> Progress:
        cost = read_own_cost(self._options.places.proc)
        elapsed = max(1, now - self._started_ns)
        return Progress(
            elapsed_ns=elapsed,
            samples=self._samples,
            lost=self._lost,
            cpu_ratio=(cost.cpu_ns - self._started_cpu_ns) / elapsed,
            rss_bytes=cost.rss_bytes,
            written_bytes=self._written,
            frequency_hz=self._frequency_hz(),
            paused=self._paused_ns is not None,
        )
