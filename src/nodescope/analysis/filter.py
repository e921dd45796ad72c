"""Which samples a view is about.

What depends on the profile's row (comm, mode, functions) is decided once per row
and then looked up; only core, process and cgroup are asked of every sample.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from nodescope.analysis.call_tree import CallTree
from nodescope.analysis.names import find_named, is_within
from nodescope.arrays import I64, Bool
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records.function_pattern import FunctionPattern
from nodescope.records.sample_filter import SampleFilter

_DENSE = 1 << 23  # numbers so far apart are counted in a table, not sorted


@dataclass(frozen=True, slots=True)
class Filter:
    """All that is given must hold."""

    cpus: frozenset[int] | None = None
    pids: frozenset[int] | None = None
    comms: tuple[str, ...] = ()  # any of them; `*` matches anything
    cgroups: tuple[str, ...] = ()  # any is part of the path, or what its pod or container is called
    kernel: bool | None = None  # mode
    frame: FunctionPattern | None = None  # some function matches
    without_frame: FunctionPattern | None = None  # no function does

    @property
    def by_sample(self) -> bool:
        """Return whether roll-ups cannot answer."""
        return self.cpus is not None or self.pids is not None or bool(self.cgroups)

    def rows(self, columns: SampleColumns) -> Bool:
        """Which rows of `profile` pass, cores and processes aside."""
        passing = np.ones(len(columns.profile_stack), bool)
        if self.comms:
            patterns = [re.compile(_wildcard(comm)) for comm in self.comms]
            fits = [any(p.fullmatch(name) for p in patterns) for name in columns.comms]
            passing &= np.array(fits, bool)[columns.profile_comm]
        if self.kernel is not None:
            passing &= columns.profile_kernel == self.kernel
        if self.frame is not None or self.without_frame is not None:
            tree = CallTree(columns.depth, columns.frame)
            for pattern, wanted in ((self.frame, True), (self.without_frame, False)):
                if pattern is not None:
                    has = tree.below(pattern.match(columns.frame_names)[columns.frame])
                    passing &= has[columns.profile_stack] == wanted
        return passing

    def samples(self, columns: SampleColumns) -> Bool | None:
        """Which samples pass; None if all do."""
        passing: Bool | None = None
        if self != Filter(cpus=self.cpus, pids=self.pids, cgroups=self.cgroups):
            passing = self.rows(columns)[columns.profile]
        for wanted, values in ((self.cpus, "cpu"), (self.pids, "pid")):
            if wanted is not None:
                chosen = np.isin(getattr(columns, values), sorted(wanted))
                passing = chosen if passing is None else passing & chosen
        if self.cgroups:
            named = find_named(columns.segment, self.cgroups)
            fits = np.array([self._fits(path, named) for path in columns.cgroups], bool)
            chosen = np.append(fits, False)[columns.cgroup]  # code -1 is not known: the last
            passing = chosen if passing is None else passing & chosen
        return passing

    def _fits(self, path: str, named: tuple[str, ...]) -> bool:
        return any(text in path for text in self.cgroups) or is_within(path, named)

    def counts(self, columns: SampleColumns) -> I64:
        """Samples that pass, by row of `profile`: from the roll-up where it can answer."""
        if columns.whole and not self.by_sample:
            return np.where(self.rows(columns), columns.profile_samples, 0)
        passing = self.samples(columns)
        profile = columns.profile if passing is None else columns.profile[passing]
        return np.bincount(profile, minlength=len(columns.profile_stack))


def compile_filter(chosen: SampleFilter) -> Filter:
    """Return the filter that was asked for, ready to be applied."""
    return Filter(
        cpus=chosen.cpus,
        pids=chosen.pids,
        comms=chosen.comms,
        cgroups=chosen.cgroups,
        kernel=None if chosen.mode is None else chosen.mode == "kernel",
        frame=None if chosen.frame is None else FunctionPattern(chosen.frame),
        without_frame=None if chosen.no_frame is None else FunctionPattern(chosen.no_frame),
    )


def count_values(values: I64, weight: I64 | None = None) -> tuple[I64, I64]:
    """The distinct numbers in order, and how many there are of each (or their weights' sums).

    Cores, processes and cgroups are small numbers, so usually nothing is sorted.
    """
    if not len(values):
        return values, np.empty(0, np.int64)
    least = int(values.min())
    if int(values.max()) - least > _DENSE:
        if weight is None:  # in a third of the memory
            ordered = np.sort(values)
            first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
            return ordered[first], np.diff(np.append(first, len(ordered)))
        found, code = np.unique(values, return_inverse=True)
        return found, np.bincount(code, weight).astype(np.int64)
    counts = np.bincount(values - least, weight).astype(np.int64)
    found = np.flatnonzero(counts)
    return found + least, counts[found]


def number_values(values: I64) -> tuple[I64, I64]:
    """The distinct numbers in order, and which of them each one is."""
    found, _ = count_values(values)
    if not len(found) or int(found[-1]) - int(found[0]) > _DENSE:
        return found, np.searchsorted(found, values)
    number = np.zeros(int(found[-1]) - int(found[0]) + 1, np.int64)
    number[found - found[0]] = np.arange(len(found))
    return found, number[values - found[0]]


def _wildcard(text: str) -> str:
    return ".*".join(re.escape(part) for part in text.split("*"))
