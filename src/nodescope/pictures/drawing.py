"""A picture before it is a file: boxes, words and rasters, in pixels from the top left.

Text comes as it was recorded; `svg` and `png` make it visible and harmless.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nodescope.arrays import U8
from nodescope.pictures.colour import INK, LINE, SHEET, Colour

LETTER = 6.6  # width of a letter of 11 px, monospaced


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle; `title` shows when the mouse is on it, `label` inside it."""

    x: float
    y: float
    width: float
    height: float
    fill: Colour | None
    title: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Words:
    """One line of text; `y` is its baseline."""

    x: float
    y: float
    text: str
    ink: Colour = INK
    anchor: Literal["start", "middle", "end"] = "start"
    large: bool = False


@dataclass(frozen=True, slots=True)
class Raster:
    """An image of [row][column] colours, stretched over a rectangle."""

    x: float
    y: float
    width: float
    height: float
    colours: U8


@dataclass(slots=True)
class Drawing:
    """All of it, in painting order."""

    width: int
    height: int
    title: str
    paper: Colour = SHEET
    shapes: list[Box | Words | Raster] = field(default_factory=list)

    def box(self, box: Box) -> None:
        self.shapes.append(box)

    def words(
        self,
        x: float,
        y: float,
        text: str,
        ink: Colour = INK,
        anchor: Literal["start", "middle", "end"] = "start",
        *,
        large: bool = False,
    ) -> None:
        self.shapes.append(Words(x, y, text, ink, anchor, large))

    def line(self, x: float, y: float, width: float, height: float, ink: Colour = LINE) -> None:
        """A straight line: a thin box."""
        self.shapes.append(Box(x, y, width, height, ink))
