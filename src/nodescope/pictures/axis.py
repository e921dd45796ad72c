"""The axis of time and the legend of colours, in text and in drawings."""

from __future__ import annotations

import numpy as np

from nodescope.pictures.colour import FAINT, LINE, PAPER, ramp
from nodescope.pictures.drawing import Drawing, Raster
from nodescope.pictures.terminal import Terminal
from nodescope.quantities import SECOND_NS
from nodescope.wall_time import format_time_of_day

_LABEL = len("12:00:05Z")


def render_time_axis(
    from_ns: int, to_ns: int, width: int, indent: int, terminal: Terminal
) -> list[str]:
    """Two lines under a picture of `width` columns: marks, and the times they stand for."""
    corner, rule, mark = ("└", "─", "┬") if terminal.unicode else ("+", "-", "+")
    marks, labels = [rule] * width, [" "] * (width + _LABEL)
    free = 0
    for moment in ticks(from_ns, to_ns, max(width // 12, 1)):
        at = int((moment - from_ns) * width // max(to_ns - from_ns, 1))
        if at >= free and at < width:
            marks[at] = mark
            labels[at : at + _LABEL] = format_time_of_day(moment)
            free = at + _LABEL + 2
    first = " " * (indent - 1) + corner + "".join(marks)
    return [terminal.faint(first), terminal.faint(" " * indent + "".join(labels).rstrip())]


def add_time_axis(
    drawing: Drawing, x: float, y: float, width: float, from_ns: int, to_ns: int
) -> None:
    """A line with marks and times below it."""
    drawing.line(x, y, width, 1)
    for moment in ticks(from_ns, to_ns, max(int(width // 90), 1)):
        at = x + (moment - from_ns) / max(to_ns - from_ns, 1) * width
        drawing.line(at, y, 1, 5, LINE)
        if at + 63 < drawing.width:
            drawing.words(at + 3, y + 16, format_time_of_day(moment), FAINT)


def add_legend(drawing: Drawing, x: float, y: float, least: str, most: str) -> None:
    """The ramp with what its ends mean."""
    drawing.words(x, y + 10, least, FAINT)
    left = x + 8 + 6.6 * len(least)
    steps = ramp(np.linspace(0, 1, 60), PAPER)[None]
    drawing.shapes.append(Raster(left, y, 180, 12, steps))
    drawing.words(left + 188, y + 10, most, FAINT)


_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


def ticks(from_ns: int, to_ns: int, most: int) -> list[int]:
    """Return round moments between two others, at most `most` of them."""
    length = max(to_ns - from_ns, 1)
    step = next((s for s in _STEPS if length <= s * SECOND_NS * max(most, 1)), None)
    step_ns = (step or -(-length // (SECOND_NS * max(most, 1)))) * SECOND_NS
    first = -(-from_ns // step_ns) * step_ns
    return list(range(first, to_ns, step_ns))
