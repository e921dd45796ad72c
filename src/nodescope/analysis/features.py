"""What a comparison counts: processes, their functions, kernel functions, and cores.

Samples of a segment are counted once by (window of time, row of `profile`); rows
are then folded into features. A function counts once per sample, however often
it recurs on the stack. A function without a name counts as its binary.

Per window of time are counted the features that may matter: those asked for, and
those with at least `FOLDED` of the segment's samples. Of the rest only the sum is
kept: a segment has tens of thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nodescope.analysis.filter import Filter
from nodescope.analysis.tree import I64, Bool, Tree
from nodescope.archive.columns import Columns

Kind = Literal["comm", "function", "kernel", "core"]
FOLDED = 0.002  # of a segment's samples
_DENSE = 20_000_000  # cells of a table of (comm, function); beyond that they are sorted


class Feature(NamedTuple):
    """A thing whose samples are counted."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class Block:
    """Counts of one part of a recording; features are numbers of a `Ledger`."""

    feature: I64
    total: I64  # samples of each feature, all windows together
    folded: I64  # features that are also counted by window …
    first: int  # … from this window on
    counts: I64  # folded × windows
    samples: I64  # all samples, by window


@dataclass
class Ledger:
    """Numbers for features, the same over all parts, which may be counted at once."""

    features: list[Feature] = field(default_factory=list)
    depth: list[float] = field(default_factory=list)  # of functions: mean depth where first met
    _numbers: dict[Feature, int] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def enter(self, kind: Kind, names: Sequence[str], depths: Sequence[float] = ()) -> I64:
        """The numbers of features, new ones if need be."""
        numbers = np.empty(len(names), np.int64)
        with self._lock:
            for at, name in enumerate(names):
                feature = Feature(kind, name)
                number = self._numbers.get(feature)
                if number is None:
                    number = self._numbers[feature] = len(self.features)
                    self.features.append(feature)
                    self.depth.append(depths[at] if depths else 0.0)
                numbers[at] = number
        return numbers


@dataclass(frozen=True, slots=True)
class Windows:
    """Equal stretches of wall time, one after the other; some may be left out."""

    from_ns: int
    width_ns: int
    used: Bool

    def __len__(self) -> int:
        return len(self.used)


def count_part(
    part: Columns, chosen: Filter, windows: Windows, ledger: Ledger, wanted: frozenset[int]
) -> Block | None:
    """Count one segment's samples; None if none fall into a window."""
    window = (part.time_ns - windows.from_ns) // windows.width_ns
    inside = (window >= 0) & (window < len(windows))
    if not inside.all():
        inside[inside] = windows.used[window[inside]]
    elif not windows.used.all():
        inside = windows.used[window]
    passing = chosen.samples(part)
    if passing is not None:
        inside &= passing
    if not inside.any():
        return None
    row, cpu = part.profile, part.cpu
    if not inside.all():
        window, row, cpu = window[inside], row[inside], cpu[inside]
    first = int(window.min())
    width = int(window.max()) - first + 1
    window = window - first
    rows = len(part.profile_stack)
    by_row = np.bincount(window * rows + row, minlength=width * rows).reshape(width, rows)
    folder = _Folder(part, by_row, ledger, wanted)
    folder.fold_comms()
    folder.fold_functions()
    folder.fold_cores(window, row, cpu)
    return folder.block(first)


class _Folder:
    """Folds counts by row of `profile` into counts by feature."""

    def __init__(self, part: Columns, by_row: I64, ledger: Ledger, wanted: frozenset[int]) -> None:
        self.part = part
        self.by_row = by_row
        self.row_total = by_row.sum(axis=0)
        self.samples = by_row.sum(axis=1)
        self.least = max(1.0, FOLDED * float(self.row_total.sum()))
        self.ledger = ledger
        self.wanted = wanted
        self._feature: list[I64] = []
        self._total: list[I64] = []
        self._folded: list[I64] = []
        self._counts: list[I64] = []

    def _add(self, number: I64, totals: I64, keys: I64, member_row: I64, member_key: I64) -> None:
        """Features with `keys`; members say which row belongs to which key."""
        self._feature.append(number)
        self._total.append(totals)
        fold = self._chosen(number, totals)
        if not fold.any():
            return
        kept = keys[fold]
        at = np.minimum(np.searchsorted(kept, member_key), len(kept) - 1)
        member = kept[at] == member_key
        at, row = at[member], member_row[member]
        order = np.argsort(at, kind="stable")
        starts = np.searchsorted(at[order], np.arange(len(kept)))
        self._folded.append(number[fold])
        gathered = np.ascontiguousarray(self.by_row[:, row[order]])
        self._counts.append(np.add.reduceat(gathered, starts, axis=1).T)

    def _chosen(self, number: I64, totals: I64) -> Bool:
        chosen: Bool = totals >= self.least
        if self.wanted:
            chosen |= np.fromiter((each in self.wanted for each in number.tolist()), bool)
        return chosen

    def fold_comms(self) -> None:
        part = self.part
        totals = np.bincount(part.profile_comm, self.row_total, len(part.comms)).astype(np.int64)
        keys = np.flatnonzero(totals)
        number = self.ledger.enter("comm", [part.comms[key] for key in keys.tolist()])
        rows = np.flatnonzero(self.row_total)
        self._add(number, totals[keys], keys, rows, part.profile_comm[rows])

    def fold_functions(self) -> None:
        part = self.part
        names, function, in_kernel = _functions(part)
        tree = Tree(part.depth, function[part.frame])
        rows = np.flatnonzero(self.row_total)
        row, key, depth = _members(tree, rows, part.profile_stack[rows])
        comm = part.profile_comm[row]
        weight = self.row_total[row]
        pair = comm * len(names) + key
        keys, totals, depths = _sum_by_key(pair, weight, depth, len(part.comms) * len(names))
        paired = zip((keys // len(names)).tolist(), (keys % len(names)).tolist(), strict=True)
        number = self.ledger.enter(
            "function", [f"{part.comms[c]};{names[f]}" for c, f in paired], depths
        )
        self._add(number, totals, keys, row, pair)
        kernel = in_kernel[key]
        row, key, depth, weight = row[kernel], key[kernel], depth[kernel], weight[kernel]
        keys, totals, depths = _sum_by_key(key, weight, depth, len(names))
        number = self.ledger.enter("kernel", [names[f] for f in keys.tolist()], depths)
        self._add(number, totals, keys, row, key)

    def fold_cores(self, window: I64, row: I64, cpu: I64) -> None:
        """Features that are no property of a row: counted from the samples themselves."""
        comms = len(self.part.comms)
        key = cpu * comms + self.part.profile_comm[row]
        lowest = int(key.min())
        key = key - lowest
        size = int(key.max()) + 1
        width = len(self.samples)
        table = np.bincount(window * size + key, minlength=width * size).reshape(width, size)
        totals = table.sum(axis=0)
        keys = np.flatnonzero(totals)
        number = self.ledger.enter(
            "core",
            [f"cpu {at // comms};{self.part.comms[at % comms]}" for at in (keys + lowest).tolist()],
        )
        self._feature.append(number)
        self._total.append(totals[keys])
        fold = self._chosen(number, totals[keys])
        self._folded.append(number[fold])
        self._counts.append(table[:, keys[fold]].T)

    def block(self, first: int) -> Block:
        return Block(
            np.concatenate(self._feature),
            np.concatenate(self._total),
            np.concatenate(self._folded),
            first,
            np.concatenate(self._counts),
            self.samples,
        )


def _functions(part: Columns) -> tuple[list[str], I64, Bool]:
    """Names of functions, which of them each frame is, and whether it is the kernel's."""
    number_of: dict[tuple[bool, str], int] = {}
    modules = part.modules
    function = np.fromiter(
        (
            number_of.setdefault(
                (kernel, f"[{modules[module].rpartition('/')[2]}]" if name[:3] == "+0x" else name),
                len(number_of),
            )
            for kernel, module, name in zip(
                part.frame_kernel.tolist(),
                part.frame_module.tolist(),
                part.frame_names,
                strict=True,
            )
        ),
        np.int64,
        len(part.frame_names),
    )
    kernel = np.array([each[0] for each in number_of], bool)
    return [name for _, name in number_of], function, kernel


def _members(tree: Tree, rows: I64, leaf: I64) -> tuple[I64, I64, I64]:
    """(row, function, depth) of each function of each row, once per row."""
    outermost = _outermost(tree)
    found_row: list[I64] = []
    found_node: list[I64] = []
    node, row = leaf, rows
    while len(node):
        counted = outermost[node]
        found_row.append(row[counted])
        found_node.append(node[counted])
        node = tree.parent[node]
        going = node >= 0
        if not going.all():
            node, row = node[going], row[going]
    if not found_row:
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    node = np.concatenate(found_node)
    return np.concatenate(found_row), tree.frame[node], tree.depth[node]


def _outermost(tree: Tree) -> Bool:
    """Rows of the tree whose function is not also among their callers."""
    if not len(tree):
        return np.empty(0, bool)
    order = np.argsort(tree.frame, kind="stable")  # by function, then in depth-first order
    base = tree.frame[order] * (len(tree) + 1)
    # How far the subtrees of the same function reach that began before this row.
    reach = np.maximum.accumulate(base + tree.end[order])
    nested = np.zeros(len(tree), bool)
    nested[order[1:]] = reach[:-1] > (base + order)[1:]
    return ~nested


def _sum_by_key(key: I64, weight: I64, depth: I64, size: int) -> tuple[I64, I64, list[float]]:
    """Distinct keys in order, the sum of their weights, and their mean depth."""
    if size <= _DENSE:
        totals = np.bincount(key, weight, size)
        depths = np.bincount(key, weight * depth, size)
        keys = np.flatnonzero(totals)
        totals, depths = totals[keys], depths[keys]
    else:
        keys, inverse = np.unique(key, return_inverse=True)
        totals = np.bincount(inverse, weight, len(keys))
        depths = np.bincount(inverse, weight * depth, len(keys))
    return keys, totals.astype(np.int64), (depths / np.maximum(totals, 1)).tolist()


def gather(
    blocks: Iterable[Block], features: I64, windows: int
) -> tuple[npt.NDArray[np.float64], I64]:
    """Counts of `features` by window, and all samples by window.

    Where a part kept only the sum of a feature, it is spread over its windows.
    """
    order = np.argsort(features)
    ordered = features[order]
    counts = np.zeros((len(features), windows))
    samples = np.zeros(windows, np.int64)
    for block in blocks:
        span = slice(block.first, block.first + len(block.samples))
        samples[span] += block.samples
        rest = np.zeros(len(features))
        place, known = _find(ordered, block.feature)
        rest[order[place]] = block.total[known]
        place, known = _find(ordered, block.folded)
        rest[order[place]] = 0
        counts[order[place], span] += block.counts[known]
        share = block.samples / max(1, int(block.samples.sum()))
        some = np.flatnonzero(rest)
        counts[some, span] += rest[some][:, np.newaxis] * share[np.newaxis, :]
    return counts, samples


def _find(ordered: I64, values: I64) -> tuple[I64, Bool]:
    """Places in `ordered` of those values that are there, and which those are."""
    if not len(ordered):
        return np.empty(0, np.int64), np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    known = ordered[at] == values
    return at[known], known
