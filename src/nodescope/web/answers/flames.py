"""A flame graph as JSON: pruned to what can be seen, cut where it is too deep, filled in by path.

Rows of paths (`analysis.flame`) become a tree without recursion. What a node lacks,
because it would be narrower than half a pixel or because nesting goes too deep for JSON,
is marked with `more`: ask again with its `path` (or its `id`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np
import numpy.typing as npt

from nodescope.analysis.flame_rows import FlameNames, FlameRows, whole
from nodescope.arrays import I64
from nodescope.errors import UsageError
from nodescope.pictures.answer_size import LARGEST, cut
from nodescope.web.question import Values

SEPARATOR = "\x1f"
DEEPEST = 400  # levels of one answer: JSON readers and writers recurse
MOST_NODES = 20_000
_ROOM = LARGEST - 2000
_HALF_PIXEL = 0.5
_NODE = len('{"name":,"value":,"self":,"module":,"kernel":true,"more":true,"id":"","children":[]},')


@dataclass(frozen=True)
class Forest:
    """Paths with the place of each one's callers, and what each ran itself."""

    rows: FlameRows
    parent: I64  # -1: none
    own: I64
    width: I64  # by which paths are shown or left out

    @classmethod
    def of(cls, rows: FlameRows, width: I64 | None = None) -> Forest:
        """Find everybody's callers."""
        order = np.argsort(rows.path)
        place = np.searchsorted(rows.path, rows.caller, sorter=order)
        found = order[np.minimum(place, max(len(order) - 1, 0))] if len(order) else order
        known = (rows.caller != 0) & (rows.path[found] == rows.caller) if len(order) else found
        parent = np.where(known, found, -1).astype(np.int64)
        below = np.bincount(parent[parent >= 0], rows.total[parent >= 0], len(parent))
        own = np.maximum(rows.total - below.astype(np.int64), 0)
        return cls(rows, parent, own, rows.total if width is None else width)

    def depths(self) -> I64:
        """How many callers each has, by doubling the steps up."""
        depth = (self.parent >= 0).astype(np.int64)
        above = self.parent.copy()
        while (going := np.flatnonzero(above >= 0)).size:
            upper = above[going]
            depth[going] += depth[upper]
            above[going] = above[upper]
        return depth

    def below(self, top: int) -> npt.NDArray[np.bool_]:
        """The row and everything called from it."""
        inside = np.zeros(len(self.parent), bool)
        inside[top] = True
        above = self.parent.copy()
        while (going := np.flatnonzero(above >= 0)).size:
            upper = above[going]
            inside[going] |= inside[upper]
            above[going] = above[upper]
        return inside


class Node(TypedDict):
    """A function called along one path, as the page gets it; `schemas.NODE` declares the same."""

    name: str
    value: int  # samples, its callees' included
    self: int  # samples of its own
    children: list[Node]
    module: NotRequired[str]
    kernel: NotRequired[bool]
    more: NotRequired[bool]  # callees are left out
    id: NotRequired[str]  # to ask for them by
    base: NotRequired[float]  # samples of the baseline, scaled to the window
    p: NotRequired[float]
    status: NotRequired[str]  # of the change: `new`, `gone`, `grown`, `shrunk`, `same`


class FlameDocument(TypedDict):
    """A flame graph as the page gets it."""

    total: int
    unit: str
    root: Node
    pruned_below: int  # samples of the narrowest box shown


class DifferenceDocument(FlameDocument):
    """Two flame graphs as one."""

    base_total: int
    base_scale: float


class Painter:
    """The extra fields of a node; none here."""

    def add(self, node: Node, at: int) -> None:
        """Add to the node of a row."""


def flame_document(
    rows: FlameRows,
    names: FlameNames,
    values: Values,
    forest: Forest | None = None,
    painter: Painter | None = None,
) -> FlameDocument:
    """Return the document of a flame graph."""
    forest = forest or Forest.of(rows)
    painter = painter or Painter()
    total = whole(rows)
    top = find_top(forest, names, values)
    root: Node = {"name": "all", "value": total, "self": 0, "children": []}
    kept = np.arange(len(rows.path))
    seen = max(total, int(forest.width[forest.parent < 0].sum()))
    if top is not None:
        root = _node(forest, names, top)
        painter.add(root, top)
        kept = np.flatnonzero(forest.below(top))
        kept = kept[kept != top]
        seen = int(forest.width[top])
    least = max(1, int(np.ceil(seen * _HALF_PIXEL / values["width"])))
    tree, least = _grow(forest, names, painter, root, top, kept, least)
    return {"total": total, "unit": "samples", "root": tree, "pruned_below": least}


def find_top(forest: Forest, names: FlameNames, values: Values) -> int | None:
    """The row that is asked for by its `id` or `path`; None for all of it."""
    if values.get("id") is not None:
        found = np.flatnonzero(forest.rows.path == np.uint64(values["id"]))
        if not len(found):
            raise UsageError("id: no such path in this window", hint="start from the root")
        return int(found[0])
    path = values.get("path")
    if path is None:
        return None
    top, candidates = -1, np.flatnonzero(forest.parent < 0)
    for name in path.split(SEPARATOR):
        fitting = [at for at in candidates.tolist() if _name(forest, names, at) == name]
        if not fitting:
            raise UsageError(
                f"path: nothing called {name!r:.80} there", hint="start from the root, without path"
            )
        top = max(fitting, key=lambda at: int(forest.width[at]))
        candidates = np.flatnonzero(forest.parent == top)
    return top


def _name(forest: Forest, names: FlameNames, at: int) -> str:
    return cut(names.of[int(forest.rows.frame[at])][1])


def _node(forest: Forest, names: FlameNames, at: int) -> Node:
    module, name, kernel = names.of[int(forest.rows.frame[at])]
    value, own = int(forest.rows.total[at]), int(forest.own[at])
    if not module:
        return {"name": cut(name), "value": value, "self": own, "children": []}
    return {
        "name": cut(name),
        "value": value,
        "self": own,
        "module": cut(module),
        "kernel": kernel,
        "children": [],
    }


def _grow(
    forest: Forest,
    names: FlameNames,
    painter: Painter,
    root: Node,
    top: int | None,
    kept: I64,
    least: int,
) -> tuple[Node, int]:
    """The tree below the root, of what is wide enough; narrower only as far as it fits."""
    width, depth = forest.width, forest.depths()
    base = 0 if top is None else int(depth[top]) + 1
    within = kept[depth[kept] - base < DEEPEST]
    chosen = within[width[within] >= least]
    while len(chosen) > MOST_NODES or _size(forest, names, chosen) > _ROOM:
        least = int(least * 1.5) + 1
        chosen = within[width[within] >= least]
    nodes = {at: _node(forest, names, at) for at in chosen.tolist()}
    for at, node in nodes.items():
        painter.add(node, at)
    home = {-1: root} if top is None else {top: root}
    # Whoever has callees that are not shown has more to show.
    shown = np.zeros(len(forest.parent), bool)
    shown[chosen] = True
    for at in np.unique(forest.parent[kept[~shown[kept]]]).tolist():
        lacking = nodes.get(at) or home.get(at)
        if lacking is not None:
            lacking["more"] = True
            if at in nodes:
                lacking["id"] = f"{int(forest.rows.path[at]):016x}"
    for at in chosen[np.argsort(-width[chosen], kind="stable")].tolist():
        parent = int(forest.parent[at])
        (nodes.get(parent) or home[parent])["children"].append(nodes[at])
    return root, least


def _size(forest: Forest, names: FlameNames, chosen: I64) -> int:
    """Estimate the largest size of the nodes: counting is much faster than writing them."""
    frames, times = np.unique(forest.rows.frame[chosen], return_counts=True)
    texts: int = sum(
        count * sum(len(json.dumps(cut(text))) for text in names.of[frame][:2])
        for frame, count in zip(frames.tolist(), times.tolist(), strict=True)
    )
    return len(chosen) * (_NODE + 110) + texts  # with numbers, and those of a baseline
