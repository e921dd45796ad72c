"""Rank samples by process name, core, cgroup, process or function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.analysis.filter import Filter, count_values
from nodescope.analysis.top_functions import RankedFunctions
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


def find_summed(chosen: Filter, by: By) -> str | None:
    """Return the roll-up of which `rank` only adds up rows; None if it reads more."""
    return "functions" if by == "function" and chosen == Filter() else None


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
    functions = RankedFunctions.of(parts, chosen)
    ordered = sorted(functions.by_name.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        TopEntry(name, total, total / functions.whole, own, module)
        for (name, module), (total, own) in ordered
    ]


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
