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
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nodescope.analysis.call_tree import CallTree, identify_frames, mix
from nodescope.analysis.filter import Filter, count_values, number_values
from nodescope.analysis.names import name_pods
from nodescope.archive.function_paths import FunctionPaths, find_paths, find_wide_callers
from nodescope.archive.sealed_tables import NARROW
from nodescope.arrays import I64, U64, Integers
from nodescope.recording.sample_columns import SampleColumns

Group = Literal["none", "comm", "cpu", "cgroup", "pod", "pid"]
SEEN = 1 / 4000  # of the whole: half a pixel on a wide screen
MERGE_ROWS = 400_000
FEW = 8  # segments: so many are summed to the last sample


@dataclass(frozen=True, slots=True)
class FlameRows:
    """Paths with their samples; a path's callers stand in the rows as well."""

    path: U64
    caller: U64  # 0: none
    frame: U64
    total: I64
    rest: int = 0  # samples of groups that are not among the rows

    def chosen(self, kept: npt.NDArray[Any]) -> FlameRows:
        """Some of them, with all their callers."""
        rows = FlameRows(self.path[kept], self.caller[kept], self.frame[kept], self.total[kept])
        return replace(rows, rest=whole(self) - whole(rows))


@dataclass
class FlameNames:
    """What frame ids stand for."""

    of: dict[int, tuple[str, str, bool]] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)

    def learn(self, columns: SampleColumns, used: I64) -> U64:
        """Remember functions by their row of `frames`; returns the id of each."""
        texts, modules = columns.frame_names, columns.modules
        names = list(map(texts.__getitem__, used.tolist()))
        kernel, module_of = columns.frame_kernel[used], columns.frame_module[used]
        ids = identify_frames(modules, module_of, names, kernel)
        known = zip(ids.tolist(), module_of.tolist(), names, kernel.tolist(), strict=True)
        for key, module, name, is_kernel in known:
            if key not in self.of:
                self.of[key] = (modules[module], name, is_kernel)
        return ids

    def learn_text(self, text: str) -> int:
        """An id for a group: a process, a core."""
        known = self.groups.get(text)
        if known is not None:
            return known
        ids = identify_frames([""], np.zeros(1, np.int64), [text], np.zeros(1, bool))
        key = self.groups[text] = int(ids[0])
        self.of[key] = ("", text, False)
        return key


def flame_of(
    parts: Iterable[SampleColumns],
    chosen: Filter,
    names: FlameNames,
    *,
    inverted: bool = False,
    group: Group = "comm",
    count: int = 1,
) -> FlameRows:
    """The flame graph of a window of `count` segments."""
    least = 0.0 if count <= FEW else NARROW
    return merge(
        flame_rows(part, chosen, names, inverted=inverted, group=group, least=least)
        for part in parts
    )


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
    if group == "comm" and not inverted and least >= NARROW and _rolled_up(columns, chosen):
        present = columns.process_samples
        wide = np.flatnonzero(present >= max(1, int(present.sum() * least)))
        roots = _learn_roots(columns.rolled_comms, wide, names)
        return _with_roots(_levels(columns.paths), roots, present, wide, columns, names)
    leaf, number, count, texts = _grouped_counts(columns, chosen, group, 0.0 if inverted else least)
    if not len(leaf):
        return _joined([])
    fewest = max(1, int(count.sum() * least))
    present = np.bincount(number, count, len(texts)).astype(np.int64)
    wide = np.flatnonzero(present >= fewest)
    kept = np.flatnonzero((present >= fewest)[number] & (leaf >= 0))
    if len(kept) < len(leaf):
        leaf, number, count = leaf[kept], number[kept], count[kept]
    if inverted:
        found = _walk_up(CallTree(columns.depth, columns.frame), leaf, number, count, fewest)
    else:
        found = _levels(find_paths(columns.depth, columns.frame, leaf, number, count, fewest))
    if group == "none":
        return _identified(found, np.zeros(1, np.uint64), columns, names)
    return _with_roots(found, _learn_roots(texts, wide, names), present, wide, columns, names)


def _rolled_up(columns: SampleColumns, chosen: Filter) -> bool:
    return columns.whole and chosen == Filter() and "paths" in columns.segment.description.tables


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
    """Samples by stack and group: (row of `stacks`, group, count) and the groups' names.

    Samples of stacks with less than the share `fold` of all may stand at a caller, the
    innermost one that has as many, or at none (-1).
    """
    if group in ("none", "comm"):
        counts = chosen.counts(columns)
        row = np.flatnonzero(counts)
        leaf, counts = columns.profile_stack[row], counts[row]
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
    """What samples are grouped by, and the names of these numbers if they are codes."""
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
    counts = np.bincount(profile, minlength=len(columns.profile_stack))
    fewest = max(1, int(len(profile) * fold))
    return number_values(find_wide_callers(columns.depth, columns.profile_stack, counts, fewest))


@dataclass(frozen=True, slots=True)
class Level:
    """Paths of one length: the place of the callers' path in the level before (at the
    first one: the group), the row of `frames` at the end, the samples.
    """

    caller: Integers
    frame: Integers
    total: I64


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


def _walk_up(tree: CallTree, leaf: I64, number: I64, count: I64, fewest: int) -> list[Level]:
    """Paths from the innermost function outwards: who called it, and who called that."""
    levels: list[Level] = []
    node, above, samples = leaf, number, count
    while len(node):
        frame = tree.frame[node]
        order = _order(above, frame)
        node, above, frame, samples = node[order], above[order], frame[order], samples[order]
        fresh = (above[1:] != above[:-1]) | (frame[1:] != frame[:-1])
        first = np.flatnonzero(np.append(True, fresh))
        total = np.add.reduceat(samples, first)
        kept = total >= fewest
        levels.append(Level(above[first[kept]], frame[first[kept]], total[kept]))
        place = np.where(kept, np.cumsum(kept) - 1, -1)
        above = np.repeat(place, np.diff(np.append(first, len(node))))
        node = tree.parent[node]
        going = np.flatnonzero((node >= 0) & (above >= 0))
        node, above, samples = node[going], above[going], samples[going]
    return levels


def _order(major: Integers, minor: Integers) -> I64:
    """The order by two numbers: in 16 bits numpy sorts by radix, ten times as fast."""
    for column in (major, minor):
        if column.max(initial=0) >= 1 << 16:
            return np.lexsort((minor, major))
    order = np.argsort(minor.astype(np.uint16), kind="stable")
    return order[np.argsort(major[order].astype(np.uint16), kind="stable")]


def _identified(
    levels: Sequence[Level], groups: U64, columns: SampleColumns, names: FlameNames
) -> FlameRows:
    """Give paths their ids, which hold in every segment."""
    if not levels:
        return _joined([])
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
    return _joined(found)


def _joined(found: list[tuple[U64, U64, U64, I64]]) -> FlameRows:
    if not found:
        empty = np.empty(0, np.uint64)
        return FlameRows(empty, empty, empty, np.empty(0, np.int64))
    path, caller, frame, total = (np.concatenate(column) for column in zip(*found, strict=True))
    return FlameRows(path, caller, frame, total)


def merge(parts: Iterable[FlameRows], *, seen: float = SEEN) -> FlameRows:
    """Sum the rows of several segments; narrow ones go as soon as rows become many."""
    merged, waiting, rows = _joined([]), [], 0
    for part in parts:
        waiting.append(part)
        rows += len(part.path)
        if rows > MERGE_ROWS:
            merged = prune(_sum([merged, *waiting]), seen / 16)
            waiting, rows = [], 0
    return _sum([merged, *waiting])


def _sum(parts: Sequence[FlameRows]) -> FlameRows:
    path = np.concatenate([part.path for part in parts])
    rest = sum(part.rest for part in parts)
    if not len(path):
        return replace(_joined([]), rest=rest)
    order = np.argsort(path)
    path = path[order]
    first = np.flatnonzero(np.append(True, path[1:] != path[:-1]))
    chosen = order[first]
    return FlameRows(
        path[first],
        np.concatenate([part.caller for part in parts])[chosen],
        np.concatenate([part.frame for part in parts])[chosen],
        np.add.reduceat(np.concatenate([part.total for part in parts])[order], first),
        rest,
    )


def whole(rows: FlameRows) -> int:
    """All samples: the sum of what nobody called."""
    return int(rows.total[rows.caller == 0].sum()) + rows.rest


def prune(rows: FlameRows, seen: float = SEEN) -> FlameRows:
    """Without what is narrower than `seen` of the whole; callers are never narrower."""
    return rows.chosen(rows.total >= max(1.0, whole(rows) * seen))


def widest(rows: FlameRows, count: int) -> FlameRows:
    """The `count` widest rows; callers are never narrower, and go before the called."""
    depth = _depths(rows)
    return rows.chosen(np.lexsort((depth, -rows.total))[:count])


def _depths(rows: FlameRows) -> I64:
    depth = np.zeros(len(rows.path), np.int64)
    order = np.argsort(rows.path)
    level = np.flatnonzero(rows.caller == 0)
    caller = order[np.searchsorted(rows.path, rows.caller, sorter=order) % max(len(order), 1)]
    going = np.flatnonzero(rows.caller != 0)
    known = np.zeros(len(rows.path), bool)
    known[level] = True
    while len(going):
        ready = known[caller[going]]
        if not ready.any():
            break
        now = going[ready]
        depth[now] = depth[caller[now]] + 1
        known[now] = True
        going = going[~ready]
    return depth


def to_tree(rows: FlameRows, names: FlameNames, total: int, *, root: str = "all") -> dict[str, Any]:
    """Nested `{name, value, children}`, widest first; `module` and `kernel` where known.

    `total` is what the root shows: all samples, also those of paths pruned away.
    """
    top: dict[str, Any] = {"name": root, "value": total, "children": []}
    nodes: dict[int, dict[str, Any]] = {0: top}
    order = np.argsort(-rows.total, kind="stable").tolist()
    listed = [column.tolist() for column in (rows.path, rows.caller, rows.frame, rows.total)]
    for at in order:
        module, name, kernel = names.of[listed[2][at]]
        node: dict[str, Any] = {"name": name, "value": listed[3][at], "children": []}
        if module:
            node |= {"module": module, "kernel": kernel}
        nodes[listed[0][at]] = node
    for at in order:
        nodes[listed[1][at]]["children"].append(nodes[listed[0][at]])
    return top
