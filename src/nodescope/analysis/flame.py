"""Flame graphs: samples by path of functions, from one segment or three hundred.

Each segment's tree is reduced to rows (id of the path, id of the callers' path,
function, samples); ids are hashes of what the path is, so segments merge by sum.
What would be narrower than a pixel is dropped early: that is most of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from nodescope.analysis.filter import Filter
from nodescope.analysis.tree import I64, U64, Tree, identify_frames, mix
from nodescope.archive.columns import Columns

Group = Literal["none", "comm", "cpu", "cgroup", "pid"]
SEEN = 1 / 4000  # of the whole: half a pixel on a wide screen
MERGE_ROWS = 400_000


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

    def learn(self, ids: U64, columns: Columns, used: I64) -> None:
        """Remember the functions that are used."""
        for row in used.tolist():
            key = int(ids[row])
            if key not in self.of:
                module = columns.modules[columns.frame_module[row]]
                kernel = bool(columns.frame_kernel[row])
                self.of[key] = (module, columns.frame_names[row], kernel)

    def learn_text(self, text: str) -> int:
        """An id for a group: a process, a core."""
        key = int(identify_frames([""], np.zeros(1, np.int64), [text], np.zeros(1, bool))[0])
        self.of[key] = ("", text, False)
        return key


def flame_rows(
    columns: Columns, chosen: Filter, names: Names, *, inverted: bool = False, group: Group = "comm"
) -> Rows:
    """The flame graph of one segment's part of a window."""
    ids = identify_frames(
        columns.modules, columns.frame_module, columns.frame_names, columns.frame_kernel
    )
    tree = Tree(columns.depth, columns.frame)
    row, number, count, texts = _grouped_counts(columns, chosen, group)
    roots = np.array([names.learn_text(text) for text in texts], np.uint64)
    groups = mix(np.zeros(len(roots), np.uint64), roots)
    salt = groups[number] if group != "none" else np.zeros(len(number), np.uint64)
    walk = _walk_up if inverted else _walk_down
    rows = walk(tree, ids, columns.profile_stack[row], salt, count)
    names.learn(ids, columns, np.flatnonzero(np.isin(ids, rows.frame)))
    if group == "none":
        return rows
    totals = np.bincount(number, count, len(groups)).astype(np.int64)
    present = totals > 0
    return Rows(
        path=np.concatenate((rows.path, groups[present])),
        caller=np.concatenate((rows.caller, np.zeros(int(present.sum()), np.uint64))),
        frame=np.concatenate((rows.frame, roots[present])),
        total=np.concatenate((rows.total, totals[present])),
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


def _walk_down(tree: Tree, ids: U64, leaf: I64, salt: U64, count: I64) -> Rows:
    """Totals of every (group, row of the tree), from the deepest rows up."""
    path_ids = tree.identify(ids)
    found: list[tuple[U64, U64, U64, I64]] = []
    depth = tree.depth[leaf]
    node, salts, samples = np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)
    for level in range(int(depth.max(initial=-1)), -1, -1):
        here = depth == level
        node = np.concatenate((node, leaf[here]))
        salts = np.concatenate((salts, salt[here]))
        samples = np.concatenate((samples, count[here]))
        key, first, inverse = np.unique(
            mix(salts, path_ids[node]), return_index=True, return_inverse=True
        )
        samples = np.bincount(inverse, samples, len(key)).astype(np.int64)
        node, salts = node[first], salts[first]
        outer = tree.parent[node]
        above = np.where(outer >= 0, mix(salts, path_ids[outer]), salts)
        found.append((key, above, ids[tree.frame[node]], samples))
        node = outer
    return _joined(found)


def _walk_up(tree: Tree, ids: U64, leaf: I64, salt: U64, count: I64) -> Rows:
    """Totals by path from the leaf outwards: who called it, and who called that."""
    found: list[tuple[U64, U64, U64, I64]] = []
    node, path, samples = leaf, salt, count
    while len(node):
        frame = ids[tree.frame[node]]
        inner, path = path, mix(path, frame)
        key, first, inverse = np.unique(path, return_index=True, return_inverse=True)
        totals = np.bincount(inverse, samples, len(key)).astype(np.int64)
        found.append((key, inner[first], frame[first], totals))
        node = tree.parent[node]
        going = node >= 0
        node, path, samples = node[going], path[going], samples[going]
    return _joined(found)


def _joined(found: list[tuple[U64, U64, U64, I64]]) -> Rows:
    if not found:
        empty = np.empty(0, np.uint64)
        return Rows(empty, empty, empty, np.empty(0, np.int64))
    path, caller, frame, total = (np.concatenate(column) for column in zip(*found, strict=True))
    return Rows(path, caller, frame, total)


def merge(parts: Iterable[Rows], *, seen: float = SEEN) -> Rows:
    """Sum the rows of several segments; narrow ones go as soon as rows become many."""
    merged = _joined([])
    for part in parts:
        merged = _sum(merged, part)
        if len(merged.path) > MERGE_ROWS:
            merged = prune(merged, seen / 16)
    return merged


def _sum(one: Rows, other: Rows) -> Rows:
    path = np.concatenate((one.path, other.path))
    key, first, inverse = np.unique(path, return_index=True, return_inverse=True)
    total = np.bincount(inverse, np.concatenate((one.total, other.total)), len(key))
    caller = np.concatenate((one.caller, other.caller))[first]
    frame = np.concatenate((one.frame, other.frame))[first]
    return Rows(key, caller, frame, total.astype(np.int64))


def whole(rows: Rows) -> int:
    """All samples: the sum of what nobody called."""
    return int(rows.total[rows.caller == 0].sum())


def prune(rows: Rows, seen: float = SEEN) -> Rows:
    """Without what is narrower than `seen` of the whole; callers are never narrower."""
    keep = rows.total >= max(1.0, whole(rows) * seen)
    return Rows(rows.path[keep], rows.caller[keep], rows.frame[keep], rows.total[keep])


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
