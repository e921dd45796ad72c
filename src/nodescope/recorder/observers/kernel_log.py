"""The kernel's log into the archive, and what it says into events.

History is told once: from the oldest record the kernel still has, or from the
one after the last that the archive tells of this boot.
"""

from __future__ import annotations

from nodescope.errors import SourceError
from nodescope.ingest.kernel_events import KernelEvents, kernel_log_row, line_of
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.already_recorded import Told, read_told
from nodescope.recorder.observer import Setting
from nodescope.records.event import Event
from nodescope.sources.kernel_files import read_text
from nodescope.sources.kernel_log.clock import SAME_CLOCK, KernelClock, Offset
from nodescope.sources.kernel_log.kmsg import KernelLog, Record
from nodescope.sources.kernel_log.messages import KernelMessage

# Lines for one answer. A flood costs no more than this; what waits stays in the kernel's
# ring and comes with the next answers, and what is overwritten there is a gap.
MOST_LINES = 500
_SOURCE = "kernel_log"
_NAMES = ("device", "cgroup", "mount")  # details that name what a line is about


class KernelLogObserver:
    """Reads what is new each second."""

    interval_ns = SECOND_NS
    patient = False

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._log: KernelLog | None = None
        self._clock: KernelClock | None = None
        self._told = Told()
        self._next: int | None = None  # sequence that should come next; None: whatever is oldest
        self._last_ns = 0
        self._events = KernelEvents()

    def begin_segment(self) -> None:
        """Nothing is said again: a line happened once."""

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        if self._log is None:
            self._open(now_ns, said)
            assert self._log is not None
        batch = self._log.read(MOST_LINES, after=self._told.sequence)
        self._setting.log_reports.note_read(now_ns)
        if not batch.records:
            said.rows += self._events.take_traces(now_ns)
            return said
        offset = self._offset()
        for record in batch.records:
            time_ns = offset.monotonic_ns(record.kernel_ns)
            self._account(record, time_ns, said)
            said.add(kernel_log_row(record, time_ns))
            self._interpret(record, time_ns, said)
        said.rows += self._events.take_traces(self._last_ns)
        return said

    def _open(self, now_ns: int, said: Observation) -> None:
        log = KernelLog(self._setting.places)
        boot_id = read_text(self._setting.places.proc / "sys/kernel/random/boot_id") or ""
        self._told = read_told(self._setting.archive, boot_id)
        if self._told.sequence >= 0:
            self._next, self._last_ns = self._told.sequence + 1, self._told.time_ns
        try:
            self._clock = KernelClock()
        except SourceError as error:
            message = f"its times are as wrong as the clocks drifted apart since boot: {error}"
            said.events.append(Event(now_ns, "source_degraded", _SOURCE, message))
        self._log = log

    def _offset(self) -> Offset:
        if self._clock is None:
            return SAME_CLOCK
        return self._clock.read_offset()

    def _account(self, record: Record, time_ns: int, said: Observation) -> None:
        """Note what was overwritten between the last record and this one."""
        if self._next is not None and record.sequence > self._next:
            lost = record.sequence - self._next
            reason = "overwritten before it was read"
            said.add_gap(self._last_ns, time_ns, _SOURCE, reason, lost)
            self._setting.log_reports.note_lost(time_ns)
        self._next, self._last_ns = record.sequence + 1, time_ns

    def _interpret(self, record: Record, time_ns: int, said: Observation) -> None:
        recorded = record.sequence in self._told.events
        message = self._events.add(said.events, line_of(record, time_ns), recorded=recorded)
        if message is not None:
            self._report(message, time_ns)

    def _report(self, message: KernelMessage, time_ns: int) -> None:
        """Note what the log reports: other observers count the same."""
        kinds = {message.kind} | ({"nic_reset"} if message.details.get("resets") else set())
        named = (message.details.get(key) for key in _NAMES)
        names = (message.interface, message.device, *(str(name) for name in named if name))
        for kind in kinds:
            self._setting.log_reports.tell(time_ns, kind, names)

    def close(self) -> None:
        """Let go of the device."""
        if self._log is not None:
            self._log.close()
        if self._clock is not None:
            self._clock.close()


def make(setting: Setting) -> KernelLogObserver:
    """The observer of this node's log."""
    return KernelLogObserver(setting)
