"""Flame graphs as pictures: an indented tree for terminals, boxes for files."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from nodescope.analysis.flame_node import FlameNode
from nodescope.pictures.colour import FAINT, Colour, flame_colour
from nodescope.pictures.drawing import Box, Drawing
from nodescope.pictures.terminal import Terminal, bar
from nodescope.pictures.text import columns_of, fit, percent, visible

DEFAULT_LINES = 40
WIDTH, LINE = 1200, 17
NARROWEST = 0.3  # pixels
DEEPEST = 300
BAR = 12
LEGEND = "red: kernel · amber: programs · grey: groups · width: share of samples"


@dataclass(frozen=True, slots=True)
class NodeChain:
    """A run of only children, shown as one line."""

    nodes: tuple[FlameNode, ...]
    depth: int  # how many chains are above it


def chains(tree: FlameNode, limit: int) -> tuple[list[NodeChain], int]:
    """The widest chains below the root in the order of the tree, and how many are left out."""
    kept: dict[int, NodeChain] = {}
    # Widest first; a chain is never wider than its callers, so those are kept as well.
    waiting: list[tuple[int, int, NodeChain]] = []
    met = 0
    for child in tree["children"]:
        met += 1
        chain = _chain(child, 0)
        heapq.heappush(waiting, (-chain.nodes[0]["value"], met, chain))
    while waiting and (not limit or len(kept) < limit):
        _, _, chain = heapq.heappop(waiting)
        kept[id(chain.nodes[0])] = chain
        for child in chain.nodes[-1]["children"]:
            met += 1
            below = _chain(child, chain.depth + 1)
            heapq.heappush(waiting, (-below.nodes[0]["value"], met, below))
    left = sum(1 + _count_below(chain) for _, _, chain in waiting)
    return list(_in_order(tree, kept)), left


def _chain(node: FlameNode, depth: int) -> NodeChain:
    nodes = [node]
    while len(node["children"]) == 1 and node["children"][0]["value"] == node["value"]:
        node = node["children"][0]
        nodes.append(node)
    return NodeChain(tuple(nodes), depth)


def _count_below(chain: NodeChain) -> int:
    count, waiting = 0, list(chain.nodes[-1]["children"])
    while waiting:
        node = waiting.pop()
        count += 1
        waiting += node["children"]
    return count


def _in_order(tree: FlameNode, kept: dict[int, NodeChain]) -> Iterator[NodeChain]:
    waiting = list(reversed(tree["children"]))
    while waiting:
        chain = kept.get(id(waiting.pop()))
        if chain is not None:
            yield chain
            waiting += reversed(chain.nodes[-1]["children"])


def render_flame(
    tree: FlameNode, terminal: Terminal, heading: str, limit: int = DEFAULT_LINES
) -> str:
    """An indented tree with shares and bars; a chain of only children is one line."""
    whole = tree["value"]
    lines = [terminal.bold(fit(heading, terminal.width))]
    shown, left = chains(tree, limit)
    for chain in shown:
        first = chain.nodes[0]
        share = first["value"] / whole
        drawn = bar(share, BAR, unicode=terminal.unicode)
        ink = flame_colour(first["name"], first.get("module"), first.get("kernel"))
        indent = " " * min(2 * chain.depth, terminal.width // 3)
        room = terminal.width - 9 - BAR - 2 - len(indent)
        lines.append(
            f"{percent(share):>8} {terminal.paint(drawn, ink)}  {indent}"
            + _render_chain(chain, room, terminal)
        )
    if left:
        lines.append(terminal.faint(f"… {left:,} narrower ones: --limit 0 shows all"))
    return "\n".join(line.rstrip() for line in lines)


def _render_chain(chain: NodeChain, room: int, terminal: Terminal) -> str:
    """Names joined; if they do not fit, the first and as many of the last as do."""
    arrow, dots = (" › ", "…") if terminal.unicode else (" > ", "...")
    names = [visible(node["name"]) for node in chain.nodes]
    inks = [
        flame_colour(node["name"], node.get("module"), node.get("kernel")) for node in chain.nodes
    ]
    if len(names) > 1 and columns_of(arrow.join(names)) > room:
        used = columns_of(names[0]) + len(arrow) + len(dots)
        tail = len(names)
        while tail > 1 and used + len(arrow) + columns_of(names[tail - 1]) <= room:
            tail -= 1
            used += len(arrow) + columns_of(names[tail])
        if tail == len(names):  # not even the last: it tells most
            return terminal.paint(fit(names[-1], room), inks[-1])
        names, inks = [names[0], dots, *names[tail:]], [inks[0], FAINT, *inks[tail:]]
    parts = [terminal.paint(fit(name, room), ink) for name, ink in zip(names, inks, strict=True)]
    return terminal.faint(arrow).join(parts)


@dataclass(frozen=True, slots=True)
class Placed:
    """A function's place: `start` in samples from the left, `depth` from the root."""

    node: FlameNode
    depth: int
    start: int


def place(tree: FlameNode, narrowest: float) -> list[Placed]:
    """Every function at least `narrowest` of the whole wide, callers before the called."""
    whole = max(tree["value"], 1)
    placed = [Placed(tree, 0, 0)]
    for at in placed:  # grows while it is walked
        if at.depth >= DEEPEST:
            continue
        start = at.start
        # By name, so that two graphs of the same program look alike.
        for child in sorted(at.node["children"], key=lambda node: str(node["name"])):
            if child["value"] / whole >= narrowest:
                placed.append(Placed(child, at.depth + 1, start))
            start += child["value"]
    return placed


def draw_flame(tree: FlameNode, heading: str, *, inverted: bool = False) -> Drawing:
    """The picture for a file: the root at the bottom, or at the top if inverted."""

    def fill(node: FlameNode) -> Colour:
        return flame_colour(node["name"], node.get("module"), node.get("kernel"))

    return draw_tree(tree, heading, fill, describe, LEGEND, inverted=inverted)


def draw_tree(
    tree: FlameNode,
    heading: str,
    fill: Callable[[FlameNode], Colour],
    title: Callable[[FlameNode, int], str],
    legend: str,
    *,
    inverted: bool = False,
) -> Drawing:
    """Functions as boxes, as wide as their samples; the mouse shows their `title`."""
    margin, top = 12.0, 48.0
    inner = WIDTH - 2 * margin
    whole = max(tree["value"], 1)
    placed = place(tree, NARROWEST / inner)
    deepest = max(each.depth for each in placed)
    height = (deepest + 1) * LINE
    drawing = Drawing(WIDTH, round(top + height + 34), heading)
    drawing.words(margin, 28, heading, large=True)
    for each in placed:
        node = each.node
        row = each.depth if inverted else deepest - each.depth
        width = node["value"] / whole * inner
        drawing.box(
            Box(
                margin + each.start / whole * inner,
                top + row * LINE,
                max(width - (0.5 if width > 2 else 0), NARROWEST),
                LINE - 1,
                fill(node),
                title(node, whole),
                node["name"],
            )
        )
    drawing.words(margin, top + height + 20, legend, FAINT)
    return drawing


def describe(node: FlameNode, whole: int) -> str:
    """Return the text that the mouse shows."""
    module = f" · {node['module']}" if node.get("module") else ""
    return f"{node['name']}{module} · {node['value']:,} samples, {percent(node['value'] / whole)}"
