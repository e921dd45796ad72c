"""What ran most: samples by process name, core, cgroup, process or function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.analysis.filter import Filter, count_values
from nodescope.archive.feature_counts import count_by_frame
from nodescope.arrays import I64
from nodescope.recording.sample_columns import SampleColumns

By = Literal["comm", "cpu", "cgroup", "pid", "function"]


@dataclass(frozen=True, slots=True)
class TopEntry:
    """One line: for functions, `samples` is the total and `own` what it ran itself."""

    name: str
    samples: int
    share: float
    own: int | None = None
    module: str | None = None


def rank(parts: Iterable[SampleColumns], chosen: Filter, by: By) -> list[TopEntry]:
    """All entries, most samples first."""
    if by == "function":
        return _rank_functions(parts, chosen)
    totals: Counter[str] = Counter()
    for part in parts:
        totals.update(_count(part, chosen, by))
    whole = max(1, totals.total())
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return [TopEntry(name, count, count / whole) for name, count in ordered]


def _rank_functions(parts: Iterable[SampleColumns], chosen: Filter) -> list[TopEntry]:
    number_of: dict[tuple[str, str], int] = {}
    totals = own = np.zeros(0, np.int64)
    whole = 0
    for part in parts:
        total_here, own_here, samples = _count_functions(part, chosen)
        whole += samples
        modules = map(part.modules.__getitem__, part.frame_module.tolist())
        keys = zip(part.frame_names, modules, strict=True)
        numbers = np.array([number_of.setdefault(key, len(number_of)) for key in keys], np.int64)
        totals = _added(totals, numbers, total_here, len(number_of))
        own = _added(own, numbers, own_here, len(number_of))
    ordered = sorted(
        ((int(totals[number]), key, int(own[number])) for key, number in number_of.items()),
        key=lambda each: (-each[0], each[1]),
    )
    return [
        TopEntry(name, total, total / whole, self_samples, module)
        for total, (name, module), self_samples in ordered
        if total
    ]


def _added(before: I64, numbers: I64, sums: I64, size: int) -> I64:
    more = np.bincount(numbers, sums, size).astype(np.int64)
    more[: len(before)] += before
    return more


def _count(part: SampleColumns, chosen: Filter, by: By) -> Counter[str]:
    if by == "comm":
        counts = chosen.counts(part)
        sums = np.bincount(part.profile_comm, counts, len(part.comms)).astype(np.int64)
        return Counter({part.comms[i]: int(sums[i]) for i in np.flatnonzero(sums)})
    if by == "cpu" and part.whole and chosen == Filter():
        keys, counts = count_values(part.second_cpu, part.second_samples)
    else:
        passing = chosen.samples(part)
        values: I64 = getattr(part, by)
        keys, counts = count_values(values if passing is None else values[passing])
    names = (
        [part.cgroups[key] if key >= 0 else "[unknown]" for key in keys.tolist()]
        if by == "cgroup"
        else [str(key) for key in keys.tolist()]
    )
    return Counter(dict(zip(names, counts.tolist(), strict=True)))


def _count_functions(part: SampleColumns, chosen: Filter) -> tuple[I64, I64, int]:
    """Return samples by row of `frames` (with the function, and in itself), and all of them."""
    if part.whole and chosen == Filter() and "functions" in part.segment.description.tables:
        return *part.function_samples, int(part.second_samples.sum())
    counts = chosen.counts(part)
    rows = np.flatnonzero(counts)
    leaf, count = part.profile_stack[rows], counts[rows]
    total, own = count_by_frame(part.depth, part.frame, leaf, count, len(part.frame_names))
    return total, own, int(counts.sum())
