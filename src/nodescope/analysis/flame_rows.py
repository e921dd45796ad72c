"""Rows of a flame graph: paths by their id, summed, pruned, and laid out as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nodescope.analysis.flame_node import FlameNode
from nodescope.archive.stack_ids import identify_frames, name_root
from nodescope.arrays import I64, U64
from nodescope.recording.sample_columns import SampleColumns

SEEN = 1 / 4000  # of the whole: half a pixel on a wide screen
MERGE_ROWS = 400_000


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
    """The functions that frame ids stand for."""

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
        key = self.groups[text] = name_root(text)
        self.of[key] = ("", text, False)
        return key


def join(found: list[tuple[U64, U64, U64, I64]]) -> FlameRows:
    """Return rows given in parts: paths, callers, functions and samples."""
    if not found:
        empty = np.empty(0, np.uint64)
        return FlameRows(empty, empty, empty, np.empty(0, np.int64))
    path, caller, frame, total = (np.concatenate(column) for column in zip(*found, strict=True))
    return FlameRows(path, caller, frame, total)


def merge(parts: Iterable[FlameRows], *, seen: float = SEEN) -> FlameRows:
    """Sum the rows of several segments; narrow ones go as soon as rows become many."""
    merged, waiting, rows = join([]), [], 0
    for part in parts:
        waiting.append(part)
        rows += len(part.path)
        if rows > MERGE_ROWS:
            merged = prune(sum_rows([merged, *waiting]), seen / 16)
            waiting, rows = [], 0
    return sum_rows([merged, *waiting])


def sum_rows(parts: Sequence[FlameRows]) -> FlameRows:
    """Return the rows of all parts, those of one path as one."""
    path = np.concatenate([part.path for part in parts])
    rest = sum(part.rest for part in parts)
    if not len(path):
        return replace(join([]), rest=rest)
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


def to_tree(rows: FlameRows, names: FlameNames, total: int, *, root: str = "all") -> FlameNode:
    """Nested `{name, value, children}`, widest first; `module` and `kernel` where known.

    `total` is what the root shows: all samples, also those of paths pruned away.
    """
    top: FlameNode = {"name": root, "value": total, "children": []}
    nodes: dict[int, FlameNode] = {0: top}
    order = np.argsort(-rows.total, kind="stable").tolist()
    listed = [column.tolist() for column in (rows.path, rows.caller, rows.frame, rows.total)]
    for at in order:
        module, name, kernel = names.of[listed[2][at]]
        node: FlameNode = {"name": name, "value": listed[3][at], "children": []}
        if module:
            node["module"], node["kernel"] = module, kernel
        nodes[listed[0][at]] = node
    for at in order:
        nodes[listed[1][at]]["children"].append(nodes[listed[0][at]])
    return top
