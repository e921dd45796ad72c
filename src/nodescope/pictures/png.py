"""Drawings as PNG, with numpy and zlib: three chunks are all that a PNG needs.

Letters are those of `glyphs`, 5 × 8 dots. No imaging library: one would weigh
more than all the rest of the pictures, for rectangles.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from nodescope.arrays import U8
from nodescope.pictures.colour import INK, Colour
from nodescope.pictures.drawing import Box, Drawing, Raster, Words
from nodescope.pictures.glyphs import ADVANCE, HEIGHT, glyph
from nodescope.pictures.text import fit, visible

SCALE = 2  # dots of the file per pixel of the drawing: sharp on today's screens
MAX_HEIGHT = 8000


def encode(colours: U8) -> bytes:
    """[row][column][red, green, blue] as a PNG file."""
    height, width = colours.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # each row starts with "not filtered"
    rows[:, 1:] = colours.reshape(height, 3 * width)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checked = kind + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))


def render_png(drawing: Drawing) -> bytes:
    """The drawing as a file; titles, which need a mouse, are left out."""
    height = min(drawing.height, MAX_HEIGHT)
    canvas = np.empty((height * SCALE, drawing.width * SCALE, 3), np.uint8)
    canvas[:] = drawing.paper
    for shape in drawing.shapes:
        if isinstance(shape, Box):
            _draw_box(canvas, shape)
        elif isinstance(shape, Raster):
            _draw_raster(canvas, shape)
        else:
            _draw_words(canvas, shape)
    return encode(canvas)


def _area(x: float, y: float, width: float, height: float) -> tuple[slice, slice]:
    left, top = max(round(x * SCALE), 0), max(round(y * SCALE), 0)
    right, bottom = round((x + width) * SCALE), round((y + height) * SCALE)
    return slice(top, max(bottom, top + 1)), slice(left, max(right, left + 1))


def _draw_box(canvas: U8, box: Box) -> None:
    if box.fill is None:
        return
    canvas[_area(box.x, box.y, box.width, box.height)] = box.fill
    label = fit(visible(box.label), int((box.width - 6) // ADVANCE)) if box.width > 20 else ""
    if label:
        _write(canvas, box.x + 3, box.y + (box.height - HEIGHT) / 2, label, INK, SCALE)


def _draw_raster(canvas: U8, raster: Raster) -> None:
    rows, columns = _area(raster.x, raster.y, raster.width, raster.height)
    target = canvas[rows, columns]
    if not target.size:
        return
    row = np.arange(target.shape[0]) * raster.colours.shape[0] // target.shape[0]
    column = np.arange(target.shape[1]) * raster.colours.shape[1] // target.shape[1]
    target[:] = raster.colours[row[:, None], column[None, :]]


def _draw_words(canvas: U8, words: Words) -> None:
    text, dot = visible(words.text), SCALE * (3 if words.large else 2) // 2
    width = len(text) * ADVANCE * dot / SCALE
    left = words.x - {"start": 0.0, "middle": width / 2, "end": width}[words.anchor]
    _write(canvas, left, words.y - HEIGHT * dot / SCALE, text, words.ink, dot)


def _write(canvas: U8, x: float, y: float, text: str, ink: Colour, dot: int) -> None:
    """Letters with their upper left corner at x, y; a dot of a letter is `dot` dots wide."""
    top, left = round(y * SCALE), round(x * SCALE)
    for number, character in enumerate(text):
        dots = np.repeat(np.repeat(glyph(character), dot, axis=0), dot, axis=1)
        at = left + number * ADVANCE * dot
        area = canvas[max(top, 0) : top + dots.shape[0], max(at, 0) : at + dots.shape[1]]
        area[dots[: area.shape[0], : area.shape[1]]] = ink
