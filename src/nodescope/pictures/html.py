r"""Self-contained HTML pages: a drawing, or a flame graph that zooms and searches.

Names reach the page as JSON inside a script element that is not run, with `<`
written as `\u003c`, and from there only as `textContent`. A policy in the page
allows just its own script and style, by their hashes, and no network.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from nodescope.pictures.colour import css, flame_colour
from nodescope.pictures.drawing import Drawing
from nodescope.pictures.flame import LEGEND, Node, place
from nodescope.pictures.svg import render_svg
from nodescope.pictures.svg import style as svg_style
from nodescope.pictures.text import visible

_NARROWEST = 1 / 20_000  # of the whole: there is zooming


def flame_page(tree: Node, heading: str, *, inverted: bool = False) -> str:
    """A flame graph: click zooms, Escape goes back, the box searches."""
    names: dict[str, int] = {"": 0}
    colours: dict[str, int] = {}
    columns: dict[str, list[int]] = {
        key: [] for key in ("depth", "start", "value", "name", "module", "colour")
    }
    for placed in place(tree, _NARROWEST):
        node = placed.node
        colour = css(flame_colour(node["name"], node.get("module"), node.get("kernel")))
        numbers = (
            placed.depth,
            placed.start,
            node["value"],
            names.setdefault(visible(node["name"]), len(names)),
            names.setdefault(visible(node.get("module") or ""), len(names)),
            colours.setdefault(colour, len(colours)),
        )
        for column, number in zip(columns.values(), numbers, strict=True):
            column.append(number)
    data = {**columns, "names": list(names), "colours": list(colours), "inverted": inverted}
    body = (
        f"<h1>{escape(visible(heading))}</h1>"
        '<form><input id="search" type="search" placeholder="search: a regular expression"'
        ' aria-label="search functions"><button id="reset" type="button">'
        f"whole graph</button><small>{LEGEND}</small></form>"
        '<div id="graph"></div><p id="said"></p>'
    )
    return _page(heading, body, _part("flame.js"), _part("page.css"), data)


def drawing_page(drawing: Drawing) -> str:
    """A drawing; what the mouse is on is said below it."""
    body = f'<main>{render_svg(drawing, standalone=False)}</main><p id="said"></p>'
    return _page(drawing.title, body, _part("hover.js"), _part("page.css") + svg_style(), None)


def report_page(heading: str, body: str) -> str:
    """A page of text, tables and drawings; `body` is markup whose texts are escaped."""
    style = _part("page.css") + _part("report.css") + svg_style()
    return _page(heading, f"<main>{body}</main>", "", style, None)


def _page(heading: str, body: str, script: str, style: str, data: Any) -> str:
    policy = (
        f"default-src 'none'; img-src data:; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    )
    carried = ""
    if data is not None:
        text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
        carried = f'<script type="application/json" id="data">{text}</script>\n'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(visible(heading))}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n{carried}<script>{script}</script>\n</body>\n</html>\n"
    )


@cache
def _part(name: str) -> str:
    return resources.files("nodescope.pictures").joinpath(name).read_text("utf-8")


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
