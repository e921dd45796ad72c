"""Flame graphs: samples by path of functions, from one segment or three hundred.

Each segment's tree is reduced to rows (id of the path, id of the callers' path,
function, samples); ids are hashes of what the path is, so segments merge by sum.
What would be narrower than a pixel is dropped early: that is most of the rows.
Of a window of many segments, each drops on its own what is narrower than half
of that; a path then lacks less than `SEEN / 2` of the whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nodescope.analysis.filter import Filter
from nodescope.analysis.tree import I64, U64, Tree, identify_frames, mix
from nodescope.archive.columns import Columns

Small = npt.NDArray[np.int16]
Group = Literal["none", "comm", "cpu", "cgroup", "pid"]
SEEN = 1 / 4000  # of the whole: half a pixel on a wide screen
MERGE_ROWS = 400_000
FEW = 8  # segments: so many are summed to the last sample


@dataclass(frozen=True, slots=True)
class Rows:
    """Paths with their samples; a path's callers stand in the rows as well."""

    path: U64
    caller: U64  # 0: none
    frame: U64
    total: I64


@dataclass
class Names:
    """What frame ids stand for."""

    of: dict[int, tuple[str, str, bool]] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)

    def learn(self, columns: Columns, used: I64) -> U64:
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
    parts: Iterable[Columns],
    chosen: Filter,
    names: Names,
    *,
    inverted: bool = False,
    group: Group = "comm",
    count: int = 1,
) -> Rows:
    """The flame graph of a window of `count` segments."""
    if count <= FEW:
        return merge(
            flame_rows(part, chosen, names, inverted=inverted, group=group) for part in parts
        )

    def rows_of(part: Columns) -> Rows:
        return flame_rows(part, chosen, names, inverted=inverted, group=group, least=SEEN / 2)

    # Decoding and numpy let go of the interpreter's lock: two threads are worth it.
    with ThreadPoolExecutor(2) as pool:
        return merge(_ahead(pool, rows_of, parts))


def _ahead(
    pool: ThreadPoolExecutor, work: Callable[[Columns], Rows], parts: Iterable[Columns]
) -> Iterator[Rows]:
    """Results in order, a few parts ahead: no more of them are in memory at once."""
    waiting: deque[Future[Rows]] = deque()
    for part in parts:
        waiting.append(pool.submit(work, part))
        if len(waiting) > 3:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def flame_rows(
    columns: Columns,
    chosen: Filter,
    names: Names,
    *,
    inverted: bool = False,
    group: Group = "comm",
    least: float = 0.0,
) -> Rows:
    """The flame graph of one segment's part of a window, without what is below `least` of it."""
    row, number, count, texts = _grouped_counts(columns, chosen, group)
    if not len(row):
        return _joined([])
    fewest = max(1, int(count.sum() * least))
    present = np.bincount(number, count, len(texts)).astype(np.int64)
    wide = np.flatnonzero(present >= fewest)
    if len(wide) < len(texts):
        chosen_rows = (present >= fewest)[number]
        row, number, count = row[chosen_rows], number[chosen_rows], count[chosen_rows]
    roots = np.zeros(len(texts), np.uint64)
    roots[wide] = [names.learn_text(texts[at]) for at in wide.tolist()]
    groups = mix(np.zeros(len(roots), np.uint64), roots)
    if group == "none":
        groups = np.zeros(1, np.uint64)
    stacks = columns.segment.read("stacks", ["depth", "frame"])  # at once, and narrow
    tree = Tree(*(stacks.column(name).to_numpy() for name in ("depth", "frame")))
    walk = _walk_up if inverted else _walk_down
    found = walk(tree, columns.profile_stack[row], number, count, fewest)
    rows = _identified(found, groups, columns, names)
    if group == "none":
        return rows
    return Rows(
        path=np.concatenate((rows.path, groups[wide])),
        caller=np.concatenate((rows.caller, np.zeros(len(wide), np.uint64))),
        frame=np.concatenate((rows.frame, roots[wide])),
        total=np.concatenate((rows.total, present[wide])),
    )


def _grouped_counts(
    columns: Columns, chosen: Filter, group: Group
) -> tuple[I64, I64, I64, list[str]]:
    """Samples by row of `profile` and group: (row, group, count) and the groups' names."""
    if group in ("none", "comm"):
        counts = chosen.counts(columns)
        row = np.flatnonzero(counts)
        if group == "none":
            return row, np.zeros(len(row), np.int64), counts[row], [""]
        return row, columns.profile_comm[row], counts[row], columns.comms
    passing = chosen.samples(columns)
    keys = {"cpu": columns.cpu, "pid": columns.pid, "cgroup": columns.cgroup}[group]
    profile = columns.profile
    if passing is not None:
        keys, profile = keys[passing], profile[passing]
    values, code = np.unique(keys, return_inverse=True)
    pairs, count = np.unique((profile << 24) | code, return_counts=True)
    if group == "cgroup":
        texts = [columns.cgroups[value] if value >= 0 else "[unknown]" for value in values.tolist()]
    else:
        texts = [f"{group} {value}" for value in values.tolist()]
    return pairs >> 24, pairs & ((1 << 24) - 1), count, texts


@dataclass(frozen=True, slots=True)
class Level:
    """Paths of one length: the place of the callers' path in the level before (at the
    first one: the group), the row of `frames` at the end, the samples.
    """

    caller: npt.NDArray[np.integer[Any]]
    frame: I64
    total: I64


def _walk_down(tree: Tree, leaf: I64, number: I64, count: I64, fewest: int) -> list[Level]:
    """Paths from the outermost function inwards.

    Leaves are sorted by group and row. As rows stand in depth-first order, the leaves
    below one path are then neighbours, and how many functions two neighbours share is
    the least depth of the rows between them: no caller is looked up for that.
    """
    if not len(leaf):
        return []
    by_leaf = np.argsort(leaf)
    # Stable in 16 bits is by radix; there are more groups than that only by process.
    narrow = number.astype(np.uint16) if number.max(initial=0) < 1 << 16 else number
    order = by_leaf[np.argsort(narrow[by_leaf], kind="stable")]
    shared = _shared_depth(tree.depth, leaf, by_leaf, order, number)
    leaf, above = leaf[order], number[order].astype(np.int32)
    running = np.zeros(len(leaf) + 1, np.int64)
    np.cumsum(count[order], out=running[1:])
    deep = tree.depth[leaf]
    levels: list[Level] = []
    # The leaves below wide paths, in order; `above` is each one's path in the level before.
    active = np.arange(len(leaf), dtype=np.int32)
    while len(active):
        depth = len(levels)
        first = np.flatnonzero(shared <= depth)
        after = np.append(first[1:], len(active))
        opening = active.take(first)
        total = running.take(active.take(after - 1) + 1) - running.take(opening)
        kept = np.flatnonzero((total >= fewest) & (deep.take(opening) >= depth))
        if len(kept):
            rows = tree.ancestors(leaf.take(opening.take(kept)), depth)
            levels.append(Level(above.take(first.take(kept)), tree.frame[rows], total.take(kept)))
        length = (after - first).take(kept)
        if len(kept) < len(first):
            # The places of kept leaves: runs that start at `first`, one after the other.
            start = first.take(kept) - (np.cumsum(length) - length)
            going = np.repeat(start, length)
            going += np.arange(len(going))
            active, shared = active.take(going), shared.take(going)
        above = np.repeat(np.arange(len(kept), dtype=np.int32), length)
    return levels


def _shared_depth(depth: I64, leaf: I64, by_leaf: I64, order: I64, number: I64) -> Small:
    """How many outer functions each leaf shares with the one before; 0 in another group.

    That is the least depth in (before, this]. Leaves lie close together, those of one
    group far apart: so first from each leaf to the next, then along the leaves between.
    """
    sorted_leaf = leaf[by_leaf]
    fresh = np.append(True, sorted_leaf[1:] != sorted_leaf[:-1])
    every = sorted_leaf[fresh]
    at = np.empty(len(leaf), np.int64)
    at[by_leaf] = np.cumsum(fresh) - 1
    at, number = at[order], number[order]
    between = np.minimum.reduceat(depth[: every[-1] + 1], every[:-1] + 1)
    shared = np.zeros(len(leaf), np.int16)
    same = np.flatnonzero(number[1:] == number[:-1]) + 1
    again = same[at[same] == at[same - 1]]  # the same leaf in the other mode: all is shared
    shared[again] = depth[every[at[again]]] + 1
    same = same[at[same] != at[same - 1]]
    shared[same] = _least_between(between, at[same - 1], at[same])
    return shared


def _least_between(values: Small, start: I64, end: I64) -> Small:
    """The least of `values[start:end]`, none of them empty, by runs of 2, 4, 8 … values."""
    found = np.empty(len(start), np.int16)
    size = np.frexp(end - start)[1] - 1  # the largest power of two that fits
    runs = values
    for power in range(int(size.max(initial=-1)) + 1):
        if power:
            half = 1 << (power - 1)
            runs = np.minimum(runs[:-half], runs[half:])
        here = np.flatnonzero(size == power)
        first, last = start.take(here), end.take(here) - (1 << power)
        found[here] = np.minimum(runs.take(first), runs.take(last))
    return found


def _walk_up(tree: Tree, leaf: I64, number: I64, count: I64, fewest: int) -> list[Level]:
    """Paths from the innermost function outwards: who called it, and who called that."""
    levels: list[Level] = []
    node, above, samples = leaf, number, count
    while len(node):
        key = (above << 32) | tree.frame[node]
        keys, inverse = np.unique(key, return_inverse=True)
        total = np.bincount(inverse, samples, len(keys)).astype(np.int64)
        kept = total >= fewest
        place = np.where(kept, np.cumsum(kept) - 1, -1)
        levels.append(Level(keys[kept] >> 32, keys[kept] & 0xFFFFFFFF, total[kept]))
        node, above = tree.parent[node], place[inverse]
        going = (node >= 0) & (above >= 0)
        node, above, samples = node[going], above[going], samples[going]
    return levels


def _identified(levels: Sequence[Level], groups: U64, columns: Columns, names: Names) -> Rows:
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


def _joined(found: list[tuple[U64, U64, U64, I64]]) -> Rows:
    if not found:
        empty = np.empty(0, np.uint64)
        return Rows(empty, empty, empty, np.empty(0, np.int64))
    path, caller, frame, total = (np.concatenate(column) for column in zip(*found, strict=True))
    return Rows(path, caller, frame, total)


def merge(parts: Iterable[Rows], *, seen: float = SEEN) -> Rows:
    """Sum the rows of several segments; narrow ones go as soon as rows become many."""
    merged, waiting, rows = _joined([]), [], 0
    for part in parts:
        waiting.append(part)
        rows += len(part.path)
        if rows > MERGE_ROWS:
            merged = prune(_sum([merged, *waiting]), seen / 16)
            waiting, rows = [], 0
    return _sum([merged, *waiting])


def _sum(parts: Sequence[Rows]) -> Rows:
    path = np.concatenate([part.path for part in parts])
    key, first, inverse = np.unique(path, return_index=True, return_inverse=True)
    total = np.bincount(inverse, np.concatenate([part.total for part in parts]), len(key))
    caller = np.concatenate([part.caller for part in parts])[first]
    frame = np.concatenate([part.frame for part in parts])[first]
    return Rows(key, caller, frame, total.astype(np.int64))


def whole(rows: Rows) -> int:
    """All samples: the sum of what nobody called."""
    return int(rows.total[rows.caller == 0].sum())


def prune(rows: Rows, seen: float = SEEN) -> Rows:
    """Without what is narrower than `seen` of the whole; callers are never narrower."""
    keep = rows.total >= max(1.0, whole(rows) * seen)
    return Rows(rows.path[keep], rows.caller[keep], rows.frame[keep], rows.total[keep])


def widest(rows: Rows, count: int) -> Rows:
    """The `count` widest rows; callers are never narrower, and go before the called."""
    depth = _depths(rows)
    kept = np.lexsort((depth, -rows.total))[:count]
    return Rows(rows.path[kept], rows.caller[kept], rows.frame[kept], rows.total[kept])


def _depths(rows: Rows) -> I64:
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


def to_tree(rows: Rows, names: Names, total: int, *, root: str = "all") -> dict[str, Any]:
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
