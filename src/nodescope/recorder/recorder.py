"""The recorder's loop: read every source when it is due, append, flush, seal.

One thread, woken by the earliest deadline or by a ring that is half full. A
source that fails becomes a `gap` and the rest goes on. A full disk pauses
recording: what was appended stays pending, what comes meanwhile is a gap.
"""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import Clock, ClockPair, SystemClock, read_pair
from nodescope.errors import ArchiveError, ArchiveFull, UsageError
from nodescope.quantities import SECOND_NS, format_bytes, format_duration
from nodescope.recorder import footprint
from nodescope.recorder.archive_followers import Readers
from nodescope.recorder.budget import Budget
from nodescope.recorder.event_log import EventLog
from nodescope.recorder.freeze import Freezing
from nodescope.recorder.heap_growth import HeapGrowth
from nodescope.recorder.notify import Notifier
from nodescope.recorder.observer import Observer
from nodescope.recorder.observer_schedule import Observing
from nodescope.recorder.options import RecorderOptions
from nodescope.recorder.pace import ClockWatch, Pace
from nodescope.recorder.samples.core_times import CoreTimes
from nodescope.recorder.samples.intake import MAX_UNDECODED_BYTES, Intake
from nodescope.recorder.segment_length import SegmentLength
from nodescope.recorder.watches.core_owners import CoreOwners
from nodescope.records.columns import Columns, columns_of
from nodescope.records.recorder_tables import HeartbeatRow
from nodescope.sources.processes.own_cost import OwnCost, read_own_cost

_DRAIN_NS = 2 * SECOND_NS  # sooner when a ring is half full
_READ_NS = SECOND_NS  # how often to flush while somebody reads along
_EARLY_NS = 20_000_000  # at most; less where the cores are read often


@dataclass(frozen=True, slots=True)
class Progress:
    """The figures shown to a person watching."""

    elapsed_ns: int
    samples: int
    lost: int
    cpu_ratio: float
    rss_bytes: int
    written_bytes: int
    frequency_hz: int
    paused: bool
    ended: bool = False


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
        owners: CoreOwners | None = None,
        report: Callable[[str], None] = lambda message: None,
        progress: Callable[[Progress], None] | None = None,
        sealed: Callable[[Progress], None] | None = None,
    ) -> None:
        """`progress` is told with each draining, `sealed` with each segment and at the end."""
        self._options = options
        self._writer = writer
        self._clock = clock or SystemClock()
        self._notifier = notifier or Notifier({})
        self._show = progress
        self._tell_sealed = sealed
        self._stopping = self._ended = False
        self._waker, self._woken = socket.socketpair()
        self._waker.setblocking(False)
        self._woken.setblocking(False)
        self._poller = select.poll()
        self._started, self._started_cost = read_pair(self._clock), self._read_cost()
        self._started_ns = now = self._started.monotonic_ns
        self._log = EventLog(report)
        self._observing = Observing(observers or {}, self._log, self._clock)
        self._intake = Intake(options, self._log, now)
        self._budget = Budget(options.budget_cpu(1), options.budget_memory_bytes)
        self._clock_watch = ClockWatch(self._started)
        self._freezing = Freezing(writer.root, now, writer.recorded_to_ns)
        self._frozen_too_much = False
        self._readers = Readers()
        self._core_pace = Pace(options.core_interval_ns, now)
        drain_ns = self._notifier.pace_ns(min(_DRAIN_NS, options.flush_ns))
        self._drain_pace = Pace(drain_ns, now + drain_ns)
        self._flush_pace = Pace(options.flush_ns, now + options.flush_ns)
        self._segment_length = SegmentLength(options.segment_ns)
        interval_ns = self._segment_length.interval_ns
        self._segment_pace = Pace(interval_ns, now + interval_ns)
        self._core_times = CoreTimes(
            options.places.proc, options.core_interval_ns, now, self._log, owners
        )
        self._heap = HeapGrowth(options.budget_memory_bytes)
        self._written = 0
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
        now = self._clock.monotonic_ns()
        if self._writer.recorded_to_ns is not None:
            killed = " and had been killed" if self._writer.recovered else ""
            reason = f"the recorder was not running{killed}"
            self._log.gap(self._writer.recorded_to_ns, now, "all", reason)
        cores = self._intake.start(now)
        if not self._intake.is_sampling:
            self._core_times.owners.blind = "no samples are taken"
        self._budget = Budget(self._options.budget_cpu(cores), self._options.budget_memory_bytes)
        # From before the start, whose cost is most of a short recording's.
        self._append_heartbeat(self._started, self._started_cost)
        self._watch_rings()
        self._log.event(now, "recorder_started", "recorder", self._intake.describe())
        self._tell_retention(now)
        self._observing.align(self._core_pace.due_ns)
        footprint.settle()
        footprint.let_go(self._options.places.proc)
        self._notifier.ready(self._intake.describe())
        self._notifier.alive()

    def _finish(self) -> None:
        self._notifier.stopping("sealing the open segment")
        now = self._clock.monotonic_ns()
        self._log.event(now, "recorder_stopped", "recorder", "stopped")
        self._intake.drain(now, keep=self._paused_ns is None, last=True)
        self._core_times.read(now, paused=self._paused_ns is not None)
        self._core_times.watch.end()
        self._observing.close(now)
        self._flush(now)
        self._intake.close()
        footprint.let_go(self._options.places.proc)  # sealing needs room of its own
        self._writer.close()
        self._ended = True
        self._show_progress(now)
        if self._tell_sealed is not None:
            self._tell_sealed(self._progress(now))
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
            self._follow_cpus()
        return bool(ready)

    def _watch_rings(self) -> None:
        """Wait on the rings there are now."""
        self._poller = select.poll()
        self._poller.register(self._woken.fileno(), select.POLLIN)
        for descriptor in self._intake.descriptors():
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
        undecoded = self._intake.undecoded_bytes
        if self._flush_pace.take(soon) is not None or undecoded > MAX_UNDECODED_BYTES:
            self._flush(now)
            self._keep_budget(now)
            self._follow_cpus()
        elif soon - self._flushed_ns >= _READ_NS and self._readers.lately(now):
            self._drain(now)
            self._flush(now)
            self._budget.forgive()  # what reading along costs is wanted
        if self._segment_pace.take(soon) is not None:
            if self._segment_length.is_over(self._writer.open_bytes):
                self._seal(now)
            else:
                footprint.let_go(self._options.places.proc, collect=True)

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

    def _follow_cpus(self) -> None:
        if self._intake.follow_cpus(self._clock.monotonic_ns()):
            self._watch_rings()

    def _drain(self, now: int) -> None:
        chunks = self._intake.drain(now, keep=self._paused_ns is None)
        self._core_times.owners.see(now, chunks)
        self._show_progress(now)

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
            )
            self._append_heartbeat()

    # -- to the archive ----------------------------------------------------

    def _flush(self, now: int) -> None:
        if self._paused_ns is not None and not self._resume(now):
            return
        try:
            self._intake.append(now, self._writer, self._core_times.watch)
            self._intake.tell_unsampled(now)
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

    def _append_observed(self, now: int, table: str, columns: Columns) -> None:
        """Rows that do not fit their table cost themselves, not the recording."""
        try:
            self._writer.append(table, columns)
        except (UsageError, ValueError) as error:
            rows = len(next(iter(columns.values())))
            self._log.gap(now, now, table, f"a defect of ours: {error}", lost=rows, loud=True)

    def _append_heartbeat(self, at: ClockPair | None = None, cost: OwnCost | None = None) -> None:
        pair, cost = at or read_pair(self._clock), cost or self._read_cost()
        heartbeat = HeartbeatRow(
            time_ns=pair.monotonic_ns,
            wall_ns=pair.wall_ns,
            cpu_ns=cost.cpu_ns,
            rss_bytes=cost.rss_bytes,
            written_bytes=self._written,
            samples=self._intake.samples,
            lost=self._intake.lost,
            folded=self._intake.folded,
            late_ns=self._core_times.take_late_ns(),
            frequency_hz=self._intake.frequency_hz,
            unresolved=self._intake.unresolved(),
        )
        self._writer.append("heartbeats", columns_of([heartbeat]))
        self._beat_ns, self._beat_cost = pair.monotonic_ns, cost

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
        self._segment_length.restart()
        self._readers.forget()
        self._intake.begin_segment(now)
        self._observing.begin_segment()
        self._tell_retention(now)
        footprint.let_go(self._options.places.proc, collect=True)
        self._append_heartbeat()  # a segment's times are placed by its own clock pairs
        if self._tell_sealed is not None:
            self._tell_sealed(self._progress(now))

    def _tell_retention(self, now: int) -> None:
        """Report frozen segments that retention removed, and frozen ones that take too much."""
        for each in self._writer.take_thawed():
            message = (
                "no longer kept beyond retention, where the recorder's own ranges may take half "
                f"of --retention-size: {each.reason}"
            )
            self._log.event(now, "thawed", each.id, message)
        frozen, limit = self._writer.frozen_bytes, self._writer.retention.size_bytes
        if frozen > limit and not self._frozen_too_much:
            message = (
                f"what is frozen takes {format_bytes(frozen)}, over --retention-size "
                f"{format_bytes(limit)}, and is kept until it is unfrozen"
            )
            self._log.event(now, "retention_exceeded", "archive", message)
        self._frozen_too_much = frozen > limit

    def _pause(self, now: int, error: ArchiveFull) -> None:
        self._paused_ns = now
        self._log.event(now, "paused", "archive", f"recording is paused: {error.reason}")
        self._notifier.status("paused: the disk is full")

    def _resume(self, now: int) -> bool:
        """Return whether the disk has room again; pending data is then written first."""
        assert self._paused_ns is not None
        if not self._writer.has_room():
            return False
        try:
            self._written += self._writer.flush()
        except ArchiveFull:
            return False
        self._log.gap(self._paused_ns, now, "all", "no room on the device")
        self._log.event(now, "resumed", "archive", "there is room again")
        self._notifier.status(self._intake.describe())
        self._intake.forget(now)
        self._observing.forget()
        self._core_times.forget()
        self._paused_ns = None
        return True

    # -- its own cost ------------------------------------------------------

    def _read_cost(self) -> OwnCost:
        return read_own_cost(self._options.places.proc)

    def _keep_budget(self, now: int) -> None:
        if not self._intake.is_sampling:
            return
        cost = self._read_cost()
        if self._heap.is_worth_returning(cost.rss_bytes):
            footprint.trim()  # not code: it would only come back, and be over again
            cost = self._read_cost()
            self._heap.note_returned(cost.rss_bytes)
        rate = self._intake.frequency_hz
        needed = self._heap.estimate_needed(cost.rss_bytes)
        decision = self._budget.decide(
            now, cost.cpu_ns, needed, rate, diverse=self._intake.is_diverse
        )
        if decision is None:
            return
        self._log.event(now, decision.kind, "recorder", decision.message, loud=decision.loud)
        self._intake.fold(decision.folding)
        if decision.frequency_hz != rate:
            self._intake.set_frequency(now, decision.frequency_hz)
            self._watch_rings()
        self._append_heartbeat()

    def _show_progress(self, now: int) -> None:
        if self._show is not None:
            self._show(self._progress(now))

    def _progress(self, now: int) -> Progress:
        """Return how it goes; at the end its cost is the recorded one, which `status` shows."""
        at_ns, cost = (self._beat_ns, self._beat_cost) if self._ended else (now, self._read_cost())
        elapsed = max(1, at_ns - self._started_ns)
        return Progress(
            elapsed_ns=max(1, now - self._started_ns),
            samples=self._intake.count_samples(),
            lost=self._intake.lost,
            cpu_ratio=(cost.cpu_ns - self._started_cost.cpu_ns) / elapsed,
            rss_bytes=cost.rss_bytes,
            written_bytes=self._written,
            frequency_hz=self._intake.frequency_hz,
            paused=self._paused_ns is not None,
            ended=self._ended,
        )
