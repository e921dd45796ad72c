"""Drawings as SVG: one file, no script, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
from html import escape

from nodescope.pictures.colour import INK, css
from nodescope.pictures.drawing import LETTER, Box, Drawing, Raster, Words
from nodescope.pictures.png import encode
from nodescope.pictures.text import fit, visible

_STYLE = (
    "text{font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}"
    ".large{font:600 15px system-ui,sans-serif}"
    ".label{pointer-events:none}"
    "g:hover>.frame{stroke:#26242e;stroke-width:1}"
    "image{image-rendering:pixelated}"
)


def text(content: str) -> str:
    """A name as XML text: visible, and escaped."""
    return escape(visible(content, 4096))


def render_svg(drawing: Drawing, *, standalone: bool = True) -> str:
    """Return the drawing: a file of its own, or a part of a page, which is its paper then."""
    size = f'viewBox="0 0 {drawing.width} {drawing.height}"'
    if standalone:  # in a page, HTML knows what an svg is
        size = f'xmlns="http://www.w3.org/2000/svg" {size}'
        size += f' width="{drawing.width}" height="{drawing.height}"'
    parts = [
        f'<svg {size} role="img">',
        f"<title>{text(drawing.title)}</title>",
        f"<style>{_STYLE}</style>" if standalone else "",
        f'<rect width="100%" height="100%" fill="{css(drawing.paper)}"/>' if standalone else "",
    ]
    for shape in drawing.shapes:
        if isinstance(shape, Box):
            parts.append(_box(shape))
        elif isinstance(shape, Words):
            parts.append(_words(shape))
        else:
            parts.append(_raster(shape))
    parts.append("</svg>")
    head = '<?xml version="1.0" encoding="UTF-8"?>\n' if standalone else ""
    return head + "\n".join(filter(None, parts)) + "\n"


def style() -> str:
    """The style rules, for a page that holds drawings."""
    return _STYLE


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _box(box: Box) -> str:
    place = " ".join(
        f'{name}="{_number(value)}"'
        for name, value in (
            ("x", box.x),
            ("y", box.y),
            ("width", box.width),
            ("height", box.height),
        )
    )
    if box.fill is None:  # something to point at
        rectangle = f'<rect {place} fill="none" pointer-events="all" class="frame"'
    else:
        named = ' class="frame"' if box.title else ""
        rectangle = f'<rect {place} fill="{css(box.fill)}"{named}'
    if not box.title:
        return rectangle + "/>"
    inner = f"{rectangle}><title>{text(box.title)}</title></rect>"
    label = fit(visible(box.label), int((box.width - 6) // LETTER)) if box.width > 20 else ""
    if label:
        x, y = _number(box.x + 3), _number(box.y + box.height / 2 + 4)
        inner += f'<text class="label" x="{x}" y="{y}" fill="{css(INK)}">{escape(label)}</text>'
    return f"<g>{inner}</g>"


def _words(words: Words) -> str:
    anchor = "" if words.anchor == "start" else f' text-anchor="{words.anchor}"'
    large = ' class="large"' if words.large else ""
    return (
        f'<text x="{_number(words.x)}" y="{_number(words.y)}" fill="{css(words.ink)}"'
        f"{anchor}{large}>{text(words.text)}</text>"
    )


def _raster(raster: Raster) -> str:
    data = base64.b64encode(encode(raster.colours)).decode("ascii")
    return (
        f'<image x="{_number(raster.x)}" y="{_number(raster.y)}" '
        f'width="{_number(raster.width)}" height="{_number(raster.height)}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
    )
