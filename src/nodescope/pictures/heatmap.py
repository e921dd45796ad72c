"""The sub-second heatmap as a picture: seconds from left to right, offsets upwards."""

from __future__ import annotations

import numpy as np

from nodescope.analysis.heatmap import Heatmap
from nodescope.arrays import F64, U8
from nodescope.pictures.axis import add_legend, add_time_axis, render_time_axis
from nodescope.pictures.colour import FAINT, MARK, NIGHT, PAPER, Colour, ramp
from nodescope.pictures.drawing import Box, Drawing, Raster
from nodescope.pictures.terminal import Terminal
from nodescope.pictures.text import fit
from nodescope.quantities import format_duration
from nodescope.recording.window import Window
from nodescope.wall_time import format_time_of_day

LABELS = 8  # columns of a terminal beside the picture
PICTURE_COLUMNS = 1100
_SHADES, _ASCII = " ░▒▓█", " .:-=+*#%@"


def terminal_rows(terminal: Terminal) -> int:
    """How many rows of the heatmap a terminal can show well."""
    lines = min(max(terminal.height - 8, 5), 25)
    return lines * 2 if terminal.colours != "none" else lines


def terminal_columns(terminal: Terminal) -> int:
    """How many columns fit."""
    return max(terminal.width - LABELS, 10)


def brightest(heatmap: Heatmap) -> int:
    """The count that is shown brightest: one outlier in 200 cells does not dim the rest."""
    filled = heatmap.counts[heatmap.counts > 0]
    return max(int(np.ceil(np.percentile(filled, 99.5))), 1) if len(filled) else 1


def _levels(heatmap: Heatmap) -> F64:
    """[row from the top][column], from 0 to 1."""
    return np.minimum(heatmap.counts.T[::-1] / brightest(heatmap), 1.0)


def render_heatmap(heatmap: Heatmap, terminal: Terminal, heading: str) -> str:
    """Lines for a terminal."""
    levels = _levels(heatmap)
    rows, columns = levels.shape
    wide = max(terminal_columns(terminal) // columns, 1)
    if terminal.colours == "none":
        body = _shaded(levels, wide, terminal)
    else:
        body = _coloured(levels, wide, terminal)
    side = "│" if terminal.unicode else "|"
    labels = _offset_labels(heatmap, len(body))
    lines = [terminal.bold(fit(heading, terminal.width))]
    lines += [
        terminal.faint(f"{label:>6} {side}") + line
        for label, line in zip(labels, body, strict=True)
    ]
    to_ns = heatmap.from_ns + columns * heatmap.column_ns
    lines += render_time_axis(heatmap.from_ns, to_ns, columns * wide, LABELS, terminal)
    cell = f"{format_duration(heatmap.column_ns)} × {format_duration(heatmap.column_ns // rows)}"
    most = brightest(heatmap)
    if terminal.colours == "none":
        shades = _SHADES if terminal.unicode else _ASCII
        scale = f"{shades[1]} 1  {shades[-1]} {most:,}"
    else:
        steps = ramp(np.linspace(0, 1, 12), NIGHT).tolist()
        scale = "0 " + "".join(terminal.paint(" ", None, _colour(c)) for c in steps) + f" {most:,}"
    lines.append(" " * LABELS + f"{scale} samples per cell of {cell}")
    return "\n".join(line.rstrip() for line in lines)


def _colour(parts: list[int]) -> Colour:
    return parts[0], parts[1], parts[2]


def _shaded(levels: F64, wide: int, terminal: Terminal) -> list[str]:
    shades = _SHADES if terminal.unicode else _ASCII
    steps = np.ceil(levels * (len(shades) - 1)).astype(int)
    return ["".join(shades[step] * wide for step in row) for row in steps.tolist()]


def _coloured(levels: F64, wide: int, terminal: Terminal) -> list[str]:
    """Two rows per line: the upper half block in one colour on the other."""
    colours = ramp(levels, NIGHT)
    if len(colours) % 2:
        colours = np.concatenate((np.full_like(colours[:1], NIGHT[0]), colours))
    return [
        _half_blocks(upper, lower, wide, terminal)
        for upper, lower in zip(colours[::2], colours[1::2], strict=True)
    ]


def _half_blocks(upper: U8, lower: U8, wide: int, terminal: Terminal) -> str:
    block = "▀" if terminal.unicode else " "
    parts: list[str] = []
    run, before = 0, None
    for pair in zip(map(_colour, upper.tolist()), map(_colour, lower.tolist()), strict=True):
        if pair != before and before is not None:
            parts.append(terminal.paint(block * run, *before))
            run = 0
        before = pair
        run += wide
    if before is not None:
        parts.append(terminal.paint(block * run, *before))
    return "".join(parts)


def _offset_labels(heatmap: Heatmap, lines: int) -> list[str]:
    labels = [""] * lines
    for line, part in ((0, 1.0), (lines // 2, 0.5), (lines - 1, 0.0)):
        labels[line] = format_duration(round(heatmap.column_ns * part)) if part else "0"
    return labels


def draw_heatmap(heatmap: Heatmap, heading: str, marked: Window | None = None) -> Drawing:
    """The picture for a file; `marked` is a time to be framed in it."""
    levels = _levels(heatmap)
    rows, columns = levels.shape
    cell = min(max(PICTURE_COLUMNS / columns, 1.0), 60.0)
    width, height = columns * cell, max(350.0, rows * 4.0)
    left, top = 64.0, 48.0
    drawing = Drawing(round(max(left + width + 24, 560)), round(top + height + 76), heading)
    drawing.words(left, 28, heading, large=True)
    drawing.shapes.append(Raster(left, top, width, height, ramp(levels, PAPER)))
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        label = format_duration(round(heatmap.column_ns * part)) if part else "0"
        drawing.words(left - 8, top + height * (1 - part) + 4, label, FAINT, "end")
    totals = heatmap.counts.sum(axis=1).tolist()
    for number, total in enumerate(totals):
        at = format_time_of_day(heatmap.from_ns + number * heatmap.column_ns)
        title = f"{at} · {total:,} samples"
        drawing.box(Box(left + number * cell, top, cell, height, None, title))
    to_ns = heatmap.from_ns + columns * heatmap.column_ns
    if marked is not None:
        per_ns = width / (to_ns - heatmap.from_ns)
        start = left + max(marked.from_ns - heatmap.from_ns, 0) * per_ns
        end = left + (min(marked.to_ns, to_ns) - heatmap.from_ns) * per_ns
        _frame(drawing, start, top, end - start, height)
    add_time_axis(drawing, left, top + height, width, heatmap.from_ns, to_ns)
    size = f"{format_duration(heatmap.column_ns)} × {format_duration(heatmap.column_ns // rows)}"
    add_legend(
        drawing, left, top + height + 44, "0", f"{brightest(heatmap):,} samples per cell of {size}"
    )
    return drawing


def _frame(drawing: Drawing, x: float, y: float, width: float, height: float) -> None:
    """Lines around a part of the map, so that what is in it stays to be seen."""
    thick = 2.0
    for side in (x - thick, x + width):
        drawing.line(side, y - thick, thick, height + 2 * thick, MARK)
    for side in (y - thick, y + height):
        drawing.line(x, side, width, thick, MARK)
