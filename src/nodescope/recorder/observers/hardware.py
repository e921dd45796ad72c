"""Errors and heat that the hardware counts: memory, processors, PCIe, RDMA ports.

A counter that is zero has no row: a large node has thousands of them.
"""

from __future__ import annotations

from nodescope.errors import SourceAbsent
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.counted_trouble import CountedTrouble
from nodescope.recorder.watches.limit_rows import LimitRows
from nodescope.sources.limits.hardware_counts import KINDS, Counter, find_counters, read_counter

_FIND_NS = 600 * SECOND_NS  # devices come and go


class HardwareObserver:
    """Looks twice a minute, from a thread of its own: firmware takes its time."""

    interval_ns = 30 * SECOND_NS
    patient = True

    def __init__(self, setting: Setting) -> None:
        self._places = setting.places
        self._rows = LimitRows()
        self._trouble = CountedTrouble(setting.log_reports)
        self._counters: list[Counter] = []
        self._find_at_ns = 0

    def begin_segment(self) -> None:
        self._rows.begin_segment()

    def observe(self, now_ns: int) -> Observation:
        if now_ns >= self._find_at_ns:
            self._find_at_ns = now_ns + _FIND_NS
            self._counters = find_counters(self._places.sys)
        if not self._counters:
            raise SourceAbsent(self._places.sys, "no hardware here counts errors")
        said = Observation()
        for counter in self._counters:
            count = read_counter(counter)
            if count is None:
                continue
            if count.value:
                self._rows.add_count(said, now_ns, count)
            kind = KINDS.get(count.name)
            if kind is None:
                continue
            rise = self._trouble.follow(now_ns, kind, count.name, count.subject, count.value)
            if rise is not None:
                errors = rise.value - rise.before
                self._trouble.report_rise(now_ns, rise, {"device": count.subject, "errors": errors})
        said.events += self._trouble.take(now_ns)
        return said

    def close(self) -> None:
        """Nothing is held."""


def make(setting: Setting) -> HardwareObserver:
    """An observer of this node's hardware."""
    return HardwareObserver(setting)
