"""Flame graphs: samples by path of functions, from one segment or three hundred.

Each segment's tree is reduced to rows (id of the path, id of the callers' path,
function, samples); ids are hashes of what the path is, so segments merge by sum.
What would be narrower than a pixel is dropped early: that is most of the rows.
Of a window of many segments, each drops on its own what is narrower than half
of that (large ones did so when they were sealed); a path then lacks less than
`SEEN / 2` of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from nodescope.analysis.filter import Filter, count_values, number_values
from nodescope.analysis.flame_rows import SEEN, FlameNames, FlameRows, join, merge, sum_rows
from nodescope.analysis.id_sums import IdSums
from nodescope.analysis.names import name_pods
from nodescope.archive.caller_paths import Level, walk_up
from nodescope.archive.function_paths import FunctionPaths, Runs, find_paths, find_wide_callers
from nodescope.archive.stack_ids import mix
from nodescope.arrays import I16, I32, I64, U64
from nodescope.recording.part import Parts
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records.tables import NARROW, TRUNK_SAMPLES

Group = Literal["none", "comm", "cpu", "cgroup", "pod", "pid"]
FEW = 8  # segments: so many are summed to the last sample


def flame_of(
    parts: Iterable[SampleColumns],
    chosen: Filter,
    names: FlameNames,
    *,
    inverted: bool = False,
    group: Group = "comm",
    count: int = 1,
    least: float | None = None,
) -> FlameRows:
    """Return the flame graph of a window of `count` segments.

    Paths below the share `least` of a segment's samples may be left out of it; unless it is
    given, none are of a few segments, and of many those narrower than half of what is seen.
    """
    if least is None:
        least = 0.0 if count <= FEW else NARROW
    rolled = find_roll_up(chosen, group, inverted)
    wide = _WideSum(rolled, names)
    others = (
        flame_rows(part, chosen, names, inverted=inverted, group=group, least=least)
        for part in parts
        if not wide.take(part, least)
    )
    merged = merge(others)
    return merged if wide.is_empty else sum_rows([merged, wide.rows()])


def is_pruned(parts: Parts) -> bool:
    """Decide whether `flame_of` leaves narrow paths out of the graph of these parts."""
    return len(parts) > FEW or any("trunk" in part.description.tables for part in parts)


@dataclass(frozen=True, slots=True)
class RollUp:
    """A table of wide paths that answers a question about whole segments."""

    table: str
    kernel: bool | None = None  # of which mode
    pods: bool = False  # cgroups stand for the pods they are of


def find_roll_up(chosen: Filter, group: Group, inverted: bool) -> RollUp | None:
    """Return the roll-up for a shape of flame graph; None if there is none."""
    if chosen == Filter(kernel=chosen.kernel) and chosen.kernel is not None:
        same = group == "comm" and not inverted
        return RollUp("mode_paths", chosen.kernel) if same else None
    if chosen != Filter():
        return None
    if inverted:
        return RollUp("caller_paths") if group == "comm" else None
    tables = {"comm": "paths", "cpu": "core_paths", "cgroup": "cgroup_paths", "pod": "cgroup_paths"}
    table = tables.get(group)
    return None if table is None else RollUp(table, pods=group == "pod")


def find_summed(
    chosen: Filter, group: Group, inverted: bool, count: int, least: float | None = None
) -> str | None:
    """Return the roll-up of which `flame_of` only adds up rows, of so many segments; or None."""
    rolled = find_roll_up(chosen, group, inverted)
    if rolled is None or rolled.pods or least is not None or count <= FEW:
        return None
    return rolled.table


def _may_serve(rolled: RollUp | None, columns: SampleColumns, least: float) -> bool:
    """Decide whether a roll-up tells as much of this segment as is asked for."""
    return (
        rolled is not None
        and columns.whole
        and rolled.table in columns.segment.description.tables
        and _effective(columns, least) >= NARROW
    )


def _effective(columns: SampleColumns, least: float) -> float:
    """Return the share below which paths are left out: of a large tree some always are."""
    return NARROW if not least and columns.has_trunk else least


class _WideSum:
    """Sums wide paths of many segments by id, and names those that can be seen."""

    def __init__(self, rolled: RollUp | None, names: FlameNames) -> None:
        self._rolled = rolled
        self._names = names
        self._parts: list[SampleColumns] = []
        self._sums = IdSums(1)
        self._whole = 0

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def take(self, part: SampleColumns, least: float) -> bool:
        """Count a segment if its roll-up has ids; returns whether it was."""
        rolled = self._rolled
        if rolled is None or rolled.pods or not _may_serve(rolled, part, least):
            return False
        counts = part.count_wide(rolled.table, rolled.kernel)
        if counts is None:
            return False
        self._parts.append(part)
        self._whole += counts.whole
        self._sums.add(counts.id, counts.samples)
        return True

    def rows(self) -> FlameRows:
        """The paths that may be seen, with their names."""
        ids, (total,) = self._sums.in_order()
        kept = np.flatnonzero(total >= max(1.0, self._whole * SEEN / 16))
        ids, total = ids[kept], total[kept]
        caller, frame = np.zeros(len(ids), np.uint64), np.zeros(len(ids), np.uint64)
        unnamed = np.ones(len(ids), bool)
        for part in self._parts:
            there = self._ids(part)
            at = np.minimum(np.searchsorted(ids, there), len(ids) - 1)
            row = np.flatnonzero((ids[at] == there) & unnamed[at])
            if len(row):
                at = at[row]
                caller[at], frame[at] = self._describe(part, row)
                unnamed[at] = False
                if not unnamed.any():
                    break
        roots = int(total[caller == 0].sum())
        return FlameRows(ids, caller, frame, total, self._whole - roots)

    def _ids(self, part: SampleColumns) -> U64:
        """The ids of a part, read again: a few parts name all, and a week has thousands."""
        assert self._rolled is not None
        counts = part.count_wide(self._rolled.table, self._rolled.kernel)
        assert counts is not None
        return counts.id

    def _describe(self, part: SampleColumns, row: I64) -> tuple[U64, U64]:
        """Ids of the callers' paths and of the functions of some rows; names are learnt."""
        assert self._rolled is not None
        wide = part.read_wide(self._rolled.table, self._rolled.kernel)
        parent = wide.parent[row]
        caller = np.where(parent >= 0, wide.id[parent], np.uint64(0))
        own = np.zeros(len(row), np.uint64)
        for root in np.flatnonzero(parent < 0).tolist():
            own[root] = self._names.learn_text(wide.name(int(wide.root[row[root]])))
        inner = np.flatnonzero(parent >= 0)
        rows_of_frames, place = np.unique(wide.frame[row[inner]], return_inverse=True)
        own[inner] = self._names.learn(part, rows_of_frames)[place]
        return caller, own


def flame_rows(
    columns: SampleColumns,
    chosen: Filter,
    names: FlameNames,
    *,
    inverted: bool = False,
    group: Group = "comm",
    least: float = 0.0,
) -> FlameRows:
    """The flame graph of one segment's part of a window, without what is below `least` of it."""
    rolled = find_roll_up(chosen, group, inverted)
    if rolled is not None and _may_serve(rolled, columns, least):
        return _rolled_rows(columns, rolled, names, _effective(columns, least))
    least = _effective(columns, least)
    leaf, number, count, texts = _grouped_counts(columns, chosen, group, 0.0 if inverted else least)
    if not len(leaf):
        return join([])
    fewest = max(1, int(count.sum() * least))
    present = np.bincount(number, count, len(texts)).astype(np.int64)
    wide = np.flatnonzero(present >= fewest)
    kept = np.flatnonzero((present >= fewest)[number] & (leaf >= 0))
    if len(kept) < len(leaf):
        leaf, number, count = leaf[kept], number[kept], count[kept]
    if inverted:
        found = walk_up(Runs(columns.depth), columns.frame, leaf, number, count, fewest)
    else:
        depth, frame = _tree(columns, int(present.sum()), least)
        found = _levels(find_paths(depth, frame, leaf, number, count, fewest))
    if group == "none":
        return _identified(found, np.zeros(1, np.uint64), columns, names)
    return _with_roots(found, _learn_roots(texts, wide, names), present, wide, columns, names)


def _rolled_rows(
    columns: SampleColumns, rolled: RollUp, names: FlameNames, least: float
) -> FlameRows:
    """The wide paths of a segment, their ids made anew: its roots are named otherwise, or old."""
    found = columns.read_wide(rolled.table, rolled.kernel)
    cores, number = number_values(found.root)
    texts = [found.name(core) for core in cores.tolist()]
    if rolled.pods:
        pods = name_pods(columns.segment, found.names or [])
        texts = [pods[code] if code >= 0 else "[unknown]" for code in cores.tolist()]
        known = {name: at for at, name in enumerate(dict.fromkeys(texts))}
        number = np.array([known[text] for text in texts], np.int64)[number]
        texts = list(known)
    outermost = found.depth == 0
    present = np.bincount(number[outermost], found.samples[outermost], len(texts)).astype(np.int64)
    fewest = max(1, int(present.sum() * least))
    wide = np.flatnonzero(present >= fewest)
    paths = replace(found.functions, group=number[~outermost])
    paths = paths.take(np.flatnonzero(paths.total >= fewest))
    # Two cgroups of one pod may have the same path: what is equal is summed.
    rows = _with_roots(_levels(paths), _learn_roots(texts, wide, names), present, wide, columns,
                       names)  # fmt: skip
    return sum_rows([rows]) if rolled.pods else rows


def _tree(columns: SampleColumns, samples: int, least: float) -> tuple[I16, I32]:
    """Depths and functions of the tree that rows of `profile` are led into."""
    if _by_trunk(columns, samples, least):
        return columns.trunk_depth, columns.trunk_frame
    return columns.depth, columns.frame


def _leaves(columns: SampleColumns, samples: int, least: float) -> I64:
    """The row of that tree for each row of `profile`; -1 if it is left out."""
    by_trunk = _by_trunk(columns, samples, least)
    return columns.profile_trunk if by_trunk else columns.profile_stack


def _by_trunk(columns: SampleColumns, samples: int, least: float) -> bool:
    """Decide whether the trunk has all paths of so many samples that are asked for.

    What is seen is at least twice as wide as what is asked for.
    """
    return columns.has_trunk and 2 * least * samples >= TRUNK_SAMPLES


def _learn_roots(texts: Sequence[str], wide: I64, names: FlameNames) -> U64:
    roots = np.zeros(len(texts), np.uint64)
    roots[wide] = [names.learn_text(texts[at]) for at in wide.tolist()]
    return roots


def _with_roots(
    found: Sequence[Level],
    roots: U64,
    present: I64,
    wide: I64,
    columns: SampleColumns,
    names: FlameNames,
) -> FlameRows:
    """Rows of paths and of the groups they start from, and how much the other groups have."""
    groups = mix(np.zeros(len(roots), np.uint64), roots)
    rows = _identified(found, groups, columns, names)
    return FlameRows(
        path=np.concatenate((rows.path, groups[wide])),
        caller=np.concatenate((rows.caller, np.zeros(len(wide), np.uint64))),
        frame=np.concatenate((rows.frame, roots[wide])),
        total=np.concatenate((rows.total, present[wide])),
        rest=int(present.sum() - present[wide].sum()),
    )


def _grouped_counts(
    columns: SampleColumns, chosen: Filter, group: Group, fold: float
) -> tuple[I64, I64, I64, list[str]]:
    """Samples by stack and group: (row of the tree, group, count) and the groups' names.

    Samples of stacks with less than the share `fold` of all may stand at a caller, the
    innermost one that has as many, or at none (-1).
    """
    if group in ("none", "comm"):
        counts = chosen.counts(columns)
        row = np.flatnonzero(counts)
        leaf, counts = _leaves(columns, int(counts.sum()), fold)[row], counts[row]
        if group == "none":
            return leaf, np.zeros(len(row), np.int64), counts, [""]
        return leaf, columns.profile_comm[row], counts, columns.comms
    passing = chosen.samples(columns)
    keys, shown = _keys(columns, group)
    profile = columns.profile
    if passing is not None:
        keys, profile = keys[passing], profile[passing]
    stacks, of_profile = _folded(columns, profile, fold)
    values, code = number_values(keys)
    pairs, count = count_values(code * len(stacks) + of_profile[profile])
    if shown is None:
        texts = [f"{group} {value}" for value in values.tolist()]
    else:
        texts = [shown[value] if value >= 0 else "[unknown]" for value in values.tolist()]
    return stacks[pairs % len(stacks)], pairs // len(stacks), count, texts


def _keys(columns: SampleColumns, group: Group) -> tuple[I64, list[str] | None]:
    """Return the groups of samples, and the names of these numbers if they are codes."""
    if group == "cgroup":
        return columns.cgroup, columns.cgroups
    if group == "pod":
        pods = name_pods(columns.segment, columns.cgroups)
        number = {name: at for at, name in enumerate(dict.fromkeys(pods))}
        codes = np.array([*(number[name] for name in pods), -1], np.int64)
        return codes[columns.cgroup], list(number)  # code -1 is not known: the last
    keys: I64 = getattr(columns, group)
    return keys, None


def _folded(columns: SampleColumns, profile: I64, fold: float) -> tuple[I64, I64]:
    """The stacks to count by, and which of them each row of `profile` is counted as."""
    if not fold:
        return columns.profile_stack, np.arange(len(columns.profile_stack))
    leaf = _leaves(columns, len(profile), fold)
    depth, _ = _tree(columns, len(profile), fold)
    counts = np.bincount(profile, minlength=len(leaf))
    fewest = max(1, int(len(profile) * fold))
    inside = np.flatnonzero(leaf >= 0)
    if len(depth) < len(leaf):  # stacks share the rows of a trunk: fewer leaves, less memory
        by_row = np.bincount(leaf[inside], counts[inside], len(depth)).astype(np.int64)
        rows = np.flatnonzero(by_row)
        caller_of = np.full(len(depth) + 1, -1, np.int64)
        caller_of[rows] = find_wide_callers(depth, rows, by_row[rows], fewest)
        return number_values(caller_of[leaf])
    callers = np.full(len(leaf), -1, np.int64)
    callers[inside] = find_wide_callers(depth, leaf[inside], counts[inside], fewest)
    return number_values(callers)


def _levels(paths: FunctionPaths) -> list[Level]:
    """Paths by length."""
    # In 16 bits numpy sorts by radix.
    order = np.argsort(paths.depth.astype(np.uint16), kind="stable")
    bounds = np.append(0, np.cumsum(np.bincount(paths.depth)))
    levels: list[Level] = []
    above = order[:0]
    for start, end in pairwise(bounds.tolist()):
        rows = order[start:end]
        caller = np.searchsorted(above, rows) - 1 if levels else paths.group[rows]
        levels.append(Level(caller, paths.frame[rows], paths.total[rows]))
        above = rows
    return levels


def _identified(
    levels: Sequence[Level], groups: U64, columns: SampleColumns, names: FlameNames
) -> FlameRows:
    """Give paths their ids, which hold in every segment."""
    if not levels:
        return join([])
    all_frames = np.concatenate([level.frame for level in levels])
    used = np.flatnonzero(np.bincount(all_frames))
    ids = np.zeros(used[-1] + 1, np.uint64)
    ids[used] = names.learn(columns, used)
    frames = ids[all_frames]
    found: list[tuple[U64, U64, U64, I64]] = []
    callers, at = groups, 0
    for level in levels:
        frame = frames[at : at + len(level.frame)]
        caller = callers[level.caller]
        path = mix(caller, frame)
        found.append((path, caller, frame, level.total))
        callers, at = path, at + len(frame)
    return join(found)
