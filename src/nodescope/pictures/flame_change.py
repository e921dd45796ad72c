"""Two flame graphs as one: as wide as the first, coloured by its change from the second.

A function counts by its samples in equal lengths of time, not by its share: a core that was
idle before and is held now has more of everything, and shows it.
"""

from __future__ import annotations

from nodescope.analysis.flame_node import FlameNode
from nodescope.pictures.colour import LESS, MORE, Colour, one
from nodescope.pictures.drawing import Drawing
from nodescope.pictures.flame import describe, draw_tree

CHANGE_LEGEND = (
    "red: more than before · blue: less · uncoloured: as before · width: share of samples"
)


def with_before(now: FlameNode, before: FlameNode, scale: float) -> FlameNode:
    """The tree of now; nodes have as `before` what a window as long had, `scale` of the other."""
    root = _copy(now, before["value"] * scale)
    waiting: list[tuple[FlameNode, FlameNode, FlameNode | None]] = [(root, now, before)]
    while waiting:
        made, node, other = waiting.pop()
        known = {_key(child): child for child in other["children"]} if other else {}
        for child in node["children"]:
            match = known.get(_key(child))
            usual = match["value"] * scale if match else 0.0
            copy = _copy(child, usual)
            made["children"].append(copy)
            waiting.append((copy, child, match))
    return root


def _copy(node: FlameNode, before: float) -> FlameNode:
    copy = node.copy()
    copy["before"], copy["children"] = before, []
    return copy


def _key(node: FlameNode) -> tuple[str, str | None, bool | None]:
    return node["name"], node.get("module"), node.get("kernel")


def change(node: FlameNode) -> float:
    """From -1, all gone, over 0, as before, to 1, new; one sample more or less is little."""
    now, before = float(node["value"]), float(node["before"])
    return (now - before) / (now + before + 1)


def draw_flame_change(tree: FlameNode, heading: str) -> Drawing:
    """The picture for a file, of a tree `with_before`."""
    return draw_tree(tree, heading, _fill, _describe, CHANGE_LEGEND)


def _fill(node: FlameNode) -> Colour:
    changed = change(node)
    return one(abs(changed), MORE if changed >= 0 else LESS)


def _describe(node: FlameNode, whole: int) -> str:
    before = f"{node['before']:,.1f} in as long before" if node["before"] else "none before"
    return f"{describe(node, whole)}; {before}"
