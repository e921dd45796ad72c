"""Pegged and kept spans of a window's cores, followed to their true ends.

A window may begin or end within a span. Its start, length and share must not depend on the
window, so readings beyond the window are read for as long as a span goes on there. What goes on
for longer than `FURTHEST_NS` is reported as cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from nodescope.judgement.kept_cores import FullSpan, collect_spans, judge_spans
from nodescope.judgement.pegged_cores import PeggedCore, PeggedRun, collect_runs, judge_runs
from nodescope.quantities import MINUTE_NS
from nodescope.recording.core_readings import NEIGHBOUR_NS, CoreReadings
from nodescope.recording.window import Window

FURTHEST_NS = 10 * MINUTE_NS  # beyond the window
_STEP_NS = MINUTE_NS
# What `CoreSpans` may read beyond a window.
REACH_NS = FURTHEST_NS + _STEP_NS + 2 * NEIGHBOUR_NS

ReadCores: TypeAlias = Callable[[Window], Iterable[CoreReadings]]


class CoreSpans:
    """Collects the spans in the readings of a window, then follows those that its edges cut."""

    def __init__(self, read: ReadCores, window: Window) -> None:
        self._read, self._window = read, window
        self._runs: list[PeggedRun] = []
        self._full: list[FullSpan] = []
        self._first_ns, self._last_ns = window.to_ns, window.from_ns
        self._cut_before = self._cut_after = False

    def collect(self, readings: Iterable[CoreReadings]) -> Iterator[CoreReadings]:
        """Pass readings on, and keep the spans in them."""
        for part in collect_spans(collect_runs(readings, self._runs), self._full):
            if len(part.time_ns):
                self._first_ns = min(self._first_ns, int(part.time_ns.min()))
                self._last_ns = max(self._last_ns, int(part.time_ns.max()))
            yield part

    def follow(self) -> None:
        """Read on before and after the window for as long as a span goes on there."""
        while self._starts_at_the_edge():
            edge_ns = self._first_ns
            if self._window.from_ns - edge_ns >= FURTHEST_NS:
                self._cut_before = True
                break
            self._read_on(Window(edge_ns - _STEP_NS, edge_ns), before_ns=edge_ns)
            if self._first_ns == edge_ns:
                break
        while self._ends_at_the_edge():
            edge_ns = self._last_ns
            if edge_ns - self._window.to_ns >= FURTHEST_NS:
                self._cut_after = True
                break
            self._read_on(Window(edge_ns, edge_ns + _STEP_NS), after_ns=edge_ns)
            if self._last_ns == edge_ns:
                break

    @property
    def pegged(self) -> list[PeggedCore]:
        """Return when cores were pegged by the kernel alone."""
        runs = [replace(run) for run in self._runs]  # judge_runs joins them in place
        return judge_runs(runs, self._window)

    @property
    def spans(self) -> list[PeggedCore]:
        """Return when cores were pegged by the kernel, and when they were kept otherwise."""
        pegged = self.pegged
        kept = judge_spans(self._full, self._window)
        return [*pegged, *(each for each in kept if not any(_overlap(each, by) for by in pegged))]

    def is_cut(self, span: PeggedCore) -> tuple[bool, bool]:
        """Decide whether a span started before, and whether it ended after what was read."""
        return (
            self._cut_before and span.from_ns == self._first_ns,
            self._cut_after and span.to_ns == self._last_ns,
        )

    def _starts_at_the_edge(self) -> bool:
        return any(each.from_ns == self._first_ns for each in self.spans)

    def _ends_at_the_edge(self) -> bool:
        return any(each.to_ns == self._last_ns for each in self.spans)

    def _read_on(
        self, window: Window, *, before_ns: int | None = None, after_ns: int | None = None
    ) -> None:
        """Collect further readings up to, or from, one that was collected already."""

        def clipped() -> Iterator[CoreReadings]:
            for part in self._read(window):
                inside = np.ones(len(part.time_ns), bool)
                if before_ns is not None:
                    inside &= part.time_ns <= before_ns
                if after_ns is not None:
                    inside &= part.time_ns >= after_ns
                yield part.take(np.flatnonzero(inside))

        for _ in self.collect(clipped()):
            pass


def _overlap(kept: PeggedCore, pegged: PeggedCore) -> bool:
    return kept.cpu == pegged.cpu and kept.from_ns < pegged.to_ns and pegged.from_ns < kept.to_ns
