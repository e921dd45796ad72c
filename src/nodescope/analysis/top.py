"""What ran most: samples by process name, core, cgroup, process or function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.analysis.filter import Filter
from nodescope.analysis.tree import I64, Tree
from nodescope.archive.columns import Columns

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
    passing = chosen.samples(part)
    values = {"cpu": part.cpu, "pid": part.pid, "cgroup": part.cgroup}[by]
    values = values if passing is None else values[passing]
    keys, counts = np.unique(values, return_counts=True)
    names = (
        [part.cgroups[key] if key >= 0 else "[unknown]" for key in keys.tolist()]
        if by == "cgroup"
        else [str(key) for key in keys.tolist()]
    )
    return Counter(dict(zip(names, counts.tolist(), strict=True)))


def function_totals(tree: Tree, own: I64, functions: int) -> I64:
    """Samples by function, each counted once however often the function is on its stack.

    Those are the samples below the outermost rows of a function: rows that are not
    inside another of its rows. Subtrees lie within each other or apart, so a row is
    inside if any row before it, of the same function, reaches beyond it.
    """
    narrow = tree.frame.astype(np.uint16) if functions < 1 << 16 else tree.frame
    order = np.argsort(narrow, kind="stable")
    frame = tree.frame[order].astype(np.int64)
    base = frame * (len(tree) + 1)
    reach = np.maximum.accumulate(base + tree.end[order])
    outermost = np.append(True, reach[:-1] - base[1:] <= order[1:])[: len(order)]
    totals = tree.totals(own)[order[outermost]]
    return np.bincount(frame[outermost], totals, functions).astype(np.int64)


def _count_functions(
    part: Columns, counts: I64, totals: Counter[tuple[str, str]], own: Counter[tuple[str, str]]
) -> None:
    rows = np.flatnonzero(counts)
    leaf = part.profile_stack[rows]
    tree = Tree(part.depth, part.frame)
    functions = len(part.frame_names)
    at_row = np.bincount(leaf, counts[rows], len(tree)).astype(np.int64)
    sums = function_totals(tree, at_row, functions)
    selves = np.bincount(tree.frame[leaf], counts[rows], functions).astype(np.int64)
    for number in np.flatnonzero(sums).tolist():
        key = (part.frame_names[number], part.modules[part.frame_module[number]])
        totals[key] += int(sums[number])
        own[key] += int(selves[number])
