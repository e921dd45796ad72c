"""Who makes and removes cgroups: the table `cgroup_churn`.

Rings are emptied every second, so that a burst fits; rows are written every ten.
Where tracepoints are not to be had, directories are compared every half minute.
"""

from __future__ import annotations

from collections.abc import Callable

from nodescope.errors import SourceError
from nodescope.ingest.observation import Observation
from nodescope.judgement.churn_ledger import ChurnLedger
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.records.event import Event
from nodescope.sources.cgroups.churn import ChurnWatch, ScanWatch, Watch
from nodescope.sources.places import Places

_ROWS_NS = 10 * SECOND_NS
_SCAN_NS = 30 * SECOND_NS


class ChurnObserver:
    """Adds up what a watch hears."""

    interval_ns = SECOND_NS
    patient = False

    def __init__(self, places: Places, open_watch: Callable[[Places], Watch] = ChurnWatch) -> None:
        self._places = places
        self._open_watch = open_watch
        self._watch: Watch | None = None
        self._ledger = ChurnLedger()
        self._whole = True
        self._told_ns: int | None = None
        self._lost = 0

    def begin_segment(self) -> None:
        self._whole = True

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        if self._watch is None:
            self._watch = self._open(now_ns, said)
            self._ledger = ChurnLedger(releases=self._watch.way == "tracepoints")
            self._told_ns = now_ns
        assert self._told_ns is not None
        scanning = self._watch.way == "scan"
        due = now_ns - self._told_ns >= (_SCAN_NS if scanning else _ROWS_NS)
        if due or not scanning:
            self._ledger.take(self._watch.read())
        if due:
            self._tell(now_ns, said)
        return said

    def _open(self, now_ns: int, said: Observation) -> Watch:
        try:
            return self._open_watch(self._places)
        except SourceError as error:
            watch = ScanWatch(self._places)
            message = (
                f"directories are compared instead of tracepoints, makers are unknown: {error}"
            )
            said.events.append(Event(now_ns, "source_degraded", "cgroup_churn", message))
            return watch

    def _tell(self, now_ns: int, said: Observation) -> None:
        assert self._watch is not None
        assert self._told_ns is not None
        for churned in self._ledger.tell(now_ns, whole=self._whole):
            said.add(churned.as_row(now_ns, self._watch.way))
        lost = self._watch.lost - self._lost
        if lost:
            reason = "the ring was full: releases may be among what is missing"
            said.add_gap(self._told_ns, now_ns, "cgroup_churn", reason, lost)
            self._lost += lost
        self._whole = False
        self._told_ns = now_ns

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()


def make(setting: Setting) -> ChurnObserver:
    """An observer of this node's cgroups."""
    return ChurnObserver(setting.places)
