"""What ran most: samples by process name, core, cgroup, process or function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.analysis.filter import Filter, count_values
from nodescope.archive.function_paths import Leaves
from nodescope.arrays import I16, I64, Integers
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
        counts = chosen.counts(part)
        whole += int(counts.sum())
        modules = map(part.modules.__getitem__, part.frame_module.tolist())
        keys = zip(part.frame_names, modules, strict=True)
        numbers = np.array([number_of.setdefault(key, len(number_of)) for key in keys], np.int64)
        total_here, own_here = _count_functions(part, counts)
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


def function_totals(depth: I16, function: Integers, leaf: I64, count: I64, functions: int) -> I64:
    """Samples by function, each counted once however often the function is on its stack."""
    leaves = Leaves.of(depth, leaf, np.zeros(len(leaf), np.int64))
    running = np.zeros(len(leaf) + 1, np.int64)
    np.cumsum(count[leaves.order], out=running[1:])
    pieces = leaves.pieces().in_order()
    total = running.take(pieces.end) - running.take(pieces.leaf)
    piece, found, _ = pieces.outermost(leaves, function, functions)
    return np.bincount(found, total.take(piece), functions).astype(np.int64)


def _count_functions(part: SampleColumns, counts: I64) -> tuple[I64, I64]:
    """Samples by row of `frames`: of stacks with that function, and of its own."""
    rows = np.flatnonzero(counts)
    leaf, count = part.profile_stack[rows], counts[rows]
    functions = len(part.frame_names)
    own = np.bincount(part.frame[leaf], count, functions).astype(np.int64)
    return function_totals(part.depth, part.frame, leaf, count, functions), own
