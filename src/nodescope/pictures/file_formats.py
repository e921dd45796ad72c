"""The formats of a picture's file, by its suffix: SVG, PNG or a self-contained page."""

from __future__ import annotations

from nodescope.pictures.drawing import Drawing
from nodescope.pictures.flame import Node, draw_flame
from nodescope.pictures.html import drawing_page, flame_page
from nodescope.pictures.png import render_png
from nodescope.pictures.svg import render_svg

SUFFIXES = (".svg", ".png", ".html")


def drawing_file(drawing: Drawing, suffix: str) -> bytes:
    """Return the bytes of a drawing's file, of one of `SUFFIXES`."""
    if suffix == ".png":
        return render_png(drawing)
    return (drawing_page(drawing) if suffix == ".html" else render_svg(drawing)).encode()


def flame_file(tree: Node, heading: str, suffix: str, *, inverted: bool) -> bytes:
    """Return the bytes of a flame graph's file; as a page it zooms and searches."""
    if suffix == ".html":
        return flame_page(tree, heading, inverted=inverted).encode()
    return drawing_file(draw_flame(tree, heading, inverted=inverted), suffix)
