"""What ran most: samples by process name, core, cgroup, process or function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.analysis.filter import Filter, count_values
from nodescope.analysis.tree import I64, Integers
from nodescope.archive.columns import Columns
from nodescope.archive.trie import Leaves, Small

By = Literal["comm", "cpu", "cgroup", "pid", "function"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: for functions, `samples` is the total and `own` what it ran itself."""

    name: str
    samples: int
    share: float
    own: int | None = None
    module: str | None = None


def rank(parts: Iterable[Columns], chosen: Filter, by: By) -> list[Entry]:
    """All entries, most samples first."""
    totals: Counter[tuple[str, str]] = Counter()
    own: Counter[tuple[str, str]] = Counter()
    whole = 0
    for part in parts:
        if by == "function":
            counts = chosen.counts(part)
            whole += int(counts.sum())
            _count_functions(part, counts, totals, own)
        else:
            found = _count(part, chosen, by)
            whole += sum(found.values())
            totals.update({(name, ""): count for name, count in found.items()})
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return [
        Entry(
            name=key[0],
            samples=count,
            share=count / whole if whole else 0.0,
            own=own[key] if by == "function" else None,
            module=key[1] if by == "function" else None,
        )
        for key, count in ordered
    ]


def _count(part: Columns, chosen: Filter, by: By) -> Counter[str]:
    if by == "comm":
        counts = chosen.counts(part)
        sums = np.bincount(part.profile_comm, counts, len(part.comms)).astype(np.int64)
        return Counter({part.comms[i]: int(sums[i]) for i in np.flatnonzero(sums)})
    if by == "cpu" and part.whole and chosen == Filter():
        keys, counts = count_values(part.second_cpu, part.second_samples)
    else:
        passing = chosen.samples(part)
        values = {"cpu": part.cpu, "pid": part.pid, "cgroup": part.cgroup}[by]
        keys, counts = count_values(values if passing is None else values[passing])
    names = (
        [part.cgroups[key] if key >= 0 else "[unknown]" for key in keys.tolist()]
        if by == "cgroup"
        else [str(key) for key in keys.tolist()]
    )
    return Counter(dict(zip(names, counts.tolist(), strict=True)))


def function_totals(depth: Small, function: Integers, leaf: I64, count: I64, functions: int) -> I64:
    """Samples by function, each counted once however often the function is on its stack."""
    leaves = Leaves.of(depth, leaf, np.zeros(len(leaf), np.int64))
    running = np.zeros(len(leaf) + 1, np.int64)
    np.cumsum(count[leaves.order], out=running[1:])
    pieces = leaves.pieces().in_order()
    total = running.take(pieces.end) - running.take(pieces.leaf)
    piece, found, _ = pieces.outermost(leaves, function, functions)
    return np.bincount(found, total.take(piece), functions).astype(np.int64)


def _count_functions(
    part: Columns, counts: I64, totals: Counter[tuple[str, str]], own: Counter[tuple[str, str]]
) -> None:
    rows = np.flatnonzero(counts)
    leaf, count = part.profile_stack[rows], counts[rows]
    names, modules, module_of = part.frame_names, part.modules, part.frame_module.tolist()
    sums = function_totals(part.depth, part.frame, leaf, count, len(names))
    selves = np.bincount(part.frame[leaf], count, len(names)).astype(np.int64)
    for number in np.flatnonzero(sums).tolist():
        totals[names[number], modules[module_of[number]]] += int(sums[number])
    for number in np.flatnonzero(selves).tolist():
        own[names[number], modules[module_of[number]]] += int(selves[number])
