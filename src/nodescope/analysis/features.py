"""Count the features of a comparison, part by part of a recording, as blocks.

A segment with many samples has its features rolled up (`archive/feature_tables.py`), by
second those that may matter; otherwise its samples are counted. By window of time are counted
the features asked for, and those with at least `COUNTED` of the segment's samples. Of the rest
only the sum is kept: a segment has tens of thousands of them. A roll-up leaves out what has
less than 1/8000 of its samples, and of a segment that lies partly in the windows it knows the
features it has by second to the sample, the rest by their share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from nodescope.analysis.filter import Filter
from nodescope.archive.feature_counts import (
    KINDS,
    CountedSamples,
    Functions,
    Kind,
    StackTree,
    count_features,
    graft_leaves,
    is_unnamed,
    name_binary,
)
from nodescope.archive.feature_tables import COUNTED
from nodescope.archive.function_paths import Trunk, narrow_trunk
from nodescope.archive.stack_ids import identify_texts
from nodescope.arrays import F32, I64, U64, Bool
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records.tables import NARROW


class Feature(NamedTuple):
    """A thing whose samples are counted."""

    kind: Kind
    name: str


class Names(Protocol):
    """The names of one part's features; `key` is a number of the part's own."""

    def name(self, kind: Kind, key: int) -> Feature:
        """Return a feature by its kind and key."""


@dataclass(frozen=True)
class Vocabulary:
    """The names of features that were counted from samples."""

    comms: list[str]
    functions: list[str]

    def name(self, kind: Kind, key: int) -> Feature:
        """Return a feature by its kind and key."""
        if kind == "comm":
            return Feature(kind, self.comms[key])
        if kind == "kernel":
            return Feature(kind, self.functions[key])
        if kind == "function":
            comm, function = divmod(key, len(self.functions))
            return Feature(kind, f"{self.comms[comm]};{self.functions[function]}")
        cpu, comm = divmod(key, len(self.comms))
        return Feature(kind, f"cpu {cpu};{self.comms[comm]}")


@dataclass(frozen=True)
class RolledNames:
    """The names of features that were rolled up: a key is a row of `features`."""

    part: SampleColumns

    def name(self, kind: Kind, key: int) -> Feature:
        """Return a feature by its kind and row."""
        rolled, part = self.part.features, self.part
        comm = rolled.comms[int(rolled.comm[key])]
        if kind == "comm":
            return Feature(kind, comm)
        if kind == "core":
            return Feature(kind, f"cpu {rolled.cpu[key]};{comm}")
        frame = int(rolled.frame[key])
        function = part.frame_names[frame]
        if is_unnamed(function):
            function = name_binary(part.modules[int(part.frame_module[frame])])
        return Feature(kind, function if kind == "kernel" else f"{comm};{function}")


@dataclass(frozen=True)
class Block:
    """Counts of one part of a recording.

    A feature is a 64-bit id, the same in all recordings; names are made only of those that
    are shown.
    """

    feature: U64  # in order
    total: I64  # samples of each feature, all windows together
    kind: npt.NDArray[np.int8]
    key: I64  # of `names`
    depth: F32  # of functions, on average
    folded: U64  # features that are also counted by window …
    first: int  # … from this window on
    counts: I64  # folded × windows
    samples: I64  # all samples, by window
    names: Names

    def describe(self, feature: int) -> tuple[Feature, float] | None:
        """Return a feature's name and how deep it lies; None if it is not here."""
        at = int(np.searchsorted(self.feature, np.uint64(feature)))
        if at == len(self.feature) or int(self.feature[at]) != feature:
            return None
        kind = KINDS[int(self.kind[at])]
        return self.names.name(kind, int(self.key[at])), float(self.depth[at])


@dataclass(frozen=True, slots=True)
class Windows:
    """Equal stretches of wall time, one after the other; some may be left out."""

    from_ns: int
    width_ns: int
    used: Bool

    def __len__(self) -> int:
        return len(self.used)

    def find(self, time_ns: I64) -> I64:
        """Return the window that each time is in; -1 if none that is used."""
        window = (time_ns - self.from_ns) // self.width_ns
        inside = (window >= 0) & (window < len(self))
        if not inside.all():
            window = np.where(inside, window, -1)
        return (
            window if self.used.all() else np.where(np.append(self.used, False)[window], window, -1)
        )


def count_part(part: SampleColumns, chosen: Filter, windows: Windows, wanted: U64) -> Block | None:
    """Count one segment's samples; None if none fall into a window.

    By window are counted the features that are `wanted` (in order) and those with many samples.
    """
    part.read_together("tick", "profile", "cpu")
    window = windows.find(part.time_ns)
    passing = chosen.samples(part)
    if passing is not None:
        window = np.where(passing, window, -1)
    row, cpu = part.profile, part.cpu
    if len(window) and window.min() < 0:
        inside = np.flatnonzero(window >= 0)
        window, row, cpu = window[inside], row[inside], cpu[inside]
    if not len(window):
        return None
    first = int(window.min())
    width = int(window.max()) - first + 1
    cell = window - first
    least = max(1.0, COUNTED * len(row))

    def choose(ids: U64, total: I64) -> Bool:
        fold: Bool = total >= least
        if len(wanted):
            at = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
            fold |= wanted[at] == ids
        return fold

    modules, names = part.modules, part.frame_names
    functions = Functions.of_frames(modules, part.frame_module, names, part.frame_kernel)
    samples = CountedSamples(row, cpu, cell, width, part.profile_comm, len(part.comms))
    found = count_features(samples, _tree(part, row), functions, identify_texts(part.comms), choose)
    feature = np.concatenate([each.id for each in found])
    order = np.argsort(feature)
    kinds = [np.full(len(each.id), KINDS.index(each.kind), np.int8) for each in found]
    return Block(
        feature[order],
        np.concatenate([each.total for each in found])[order],
        np.concatenate(kinds)[order],
        np.concatenate([each.key for each in found])[order],
        np.concatenate([each.depth for each in found])[order],
        np.concatenate([each.id[each.chosen] for each in found]),
        first,
        np.concatenate([each.counts for each in found]),
        np.bincount(cell, minlength=width),
        Vocabulary(part.comms, functions.names),
    )


def _tree(part: SampleColumns, row: I64) -> StackTree:
    """Return the tree whose functions count in some rows of `profile`, as when it was sealed."""
    if not part.has_trunk:
        return StackTree(part.depth, part.frame, part.profile_stack)
    trunk = Trunk(part.trunk_depth, part.trunk_frame, part.profile_trunk)
    fewest = max(1, int(part.profile_samples.sum() * NARROW))
    wide = narrow_trunk(trunk, part.profile_samples, fewest)
    rows = np.flatnonzero(np.bincount(row, minlength=len(wide.row_of)))
    tree = graft_leaves(wide.depth, wide.frame, wide.row_of[rows], part.profile_leaf[rows])
    row_of = np.full(len(wide.row_of), -1, np.int64)
    row_of[rows] = tree.row_of
    return StackTree(tree.depth, tree.frame, row_of)


def has_roll_up(part: SampleColumns, chosen: Filter) -> bool:
    """Decide whether the roll-up of a segment answers instead of its samples."""
    return chosen == Filter() and "features" in part.segment.description.tables


def read_part(part: SampleColumns, windows: Windows) -> Block | None:
    """Read what `count_part` would count from the roll-up of a segment.

    A second counts in the window that it ends in.
    """
    rolled = part.features
    ends = part.segment.wall_ns((part.second + 1) * SECOND_NS - 1)
    window = windows.find(ends)
    inside = np.flatnonzero(window >= 0)
    if not len(inside):
        return None
    first = int(window[inside].min())
    width = int(window[inside].max()) - first + 1
    samples = np.bincount(
        window[inside] - first, part.second_samples[inside], width
    ).astype(np.int64)  # fmt: skip
    share = samples.sum() / max(1, int(part.second_samples.sum()))
    total = rolled.samples if share == 1 else np.rint(rolled.samples * share).astype(np.int64)
    counted, place = np.unique(rolled.counted, return_inverse=True)
    when = windows.find(part.segment.wall_ns((rolled.second + 1) * SECOND_NS - 1))
    there = np.flatnonzero(when >= 0)
    pair = place[there] * width + when[there] - first
    counts = np.bincount(pair, rolled.counts[there], len(counted) * width).astype(np.int64)
    counts = counts.reshape(-1, width)
    if share != 1:
        total[counted] = counts.sum(axis=1)
    order = np.argsort(rolled.id)
    order = order[total[order] > 0]
    return Block(
        rolled.id[order],
        total[order],
        rolled.kind[order],
        order,
        (rolled.depth[order] / np.maximum(rolled.samples[order], 1)).astype(np.float32),
        rolled.id[counted],
        first,
        counts,
        samples,
        RolledNames(part),
    )


def sum_totals(blocks: Iterable[Block], features: U64) -> I64:
    """Samples of each of `features`, which are in order and all there are."""
    totals = np.zeros(len(features), np.int64)
    for block in blocks:
        totals[np.searchsorted(features, block.feature)] += block.total
    return totals


def gather(blocks: Iterable[Block], features: U64, windows: int) -> npt.NDArray[np.float64]:
    """Counts of `features`, which are in order, by window.

    Where a part kept only the sum of a feature, it is spread over its windows.
    """
    counts = np.zeros((len(features), windows))
    for block in blocks:
        span = slice(block.first, block.first + len(block.samples))
        rest = np.zeros(len(features))
        place, known = _find(features, block.feature)
        rest[place] = block.total[known]
        place, known = _find(features, block.folded)
        rest[place] = 0
        counts[place, span] += block.counts[known]
        share = block.samples / max(1, int(block.samples.sum()))
        some = np.flatnonzero(rest)
        counts[some, span] += rest[some][:, np.newaxis] * share[np.newaxis, :]
    return counts


def _find(ordered: U64, values: U64) -> tuple[I64, Bool]:
    """Places in `ordered` of those values that are there, and which those are."""
    if not len(ordered):
        return np.empty(0, np.int64), np.zeros(len(values), bool)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    known = ordered[at] == values
    return at[known], known
