"""Colours: one ramp for dark terminals, one for paper, and one hue per kind of function."""

from __future__ import annotations

import zlib

import numpy as np

from nodescope.arrays import F64, U8

Colour = tuple[int, int, int]

# From nothing to most. In both, brightness alone tells the order: for print, and for
# eyes that see no red.
NIGHT: tuple[Colour, ...] = (
    (24, 22, 34), (66, 30, 96), (137, 38, 104), (206, 66, 72), (243, 124, 46), (252, 222, 132),
)  # fmt: skip
PAPER: tuple[Colour, ...] = (
    (250, 247, 241), (253, 224, 166), (249, 168, 87), (226, 94, 46), (165, 38, 38), (84, 14, 34),
)  # fmt: skip

# Of a change: from as before to all new, and to all gone.
MORE: tuple[Colour, ...] = ((244, 242, 239), (247, 178, 152), (235, 96, 72))
LESS: tuple[Colour, ...] = ((244, 242, 239), (160, 194, 232), (86, 138, 206))

INK: Colour = (38, 36, 46)
FAINT: Colour = (122, 118, 132)
LINE: Colour = (216, 211, 203)
SHEET: Colour = (255, 255, 255)
MARK: Colour = (31, 88, 196)  # what a picture points at: on no ramp
UNREAD: Colour = (232, 230, 227)  # nothing was recorded there


def ramp(levels: F64, stops: tuple[Colour, ...] = PAPER) -> U8:
    """Colours of levels from 0 to 1; NaN is what was not read."""
    table = np.array(stops, np.float64)
    known = ~np.isnan(levels)
    at = np.clip(np.where(known, levels, 0.0), 0.0, 1.0) * (len(table) - 1)
    low = np.minimum(at.astype(np.int64), len(table) - 2)
    part = (at - low)[..., None]
    mixed = table[low] * (1 - part) + table[low + 1] * part
    mixed[~known] = UNREAD
    colours: U8 = np.rint(mixed).astype(np.uint8)
    return colours


def one(level: float, stops: tuple[Colour, ...] = PAPER) -> Colour:
    """The colour of one level."""
    red, green, blue = ramp(np.array([level]), stops)[0].tolist()
    return red, green, blue


def flame_colour(name: str, module: str | None, kernel: bool | None) -> Colour:
    """Kernel red, programs amber, processes and other groups slate; shades tell modules apart."""
    shade = zlib.crc32(f"{module}\0{name}".encode("utf-8", "replace")) % 1000 / 1000
    if kernel is None:
        base, other = (139, 150, 170), (160, 169, 186)
    elif kernel:
        base, other = (226, 98, 84), (240, 132, 112)
    else:
        base, other = (243, 178, 76), (250, 208, 120)
    return (
        round(base[0] + (other[0] - base[0]) * shade),
        round(base[1] + (other[1] - base[1]) * shade),
        round(base[2] + (other[2] - base[2]) * shade),
    )


def css(colour: Colour) -> str:
    """`#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def nearest_of_256(colour: Colour) -> int:
    """The closest colour of a 256-colour terminal: its 6×6×6 cube and its greys."""
    levels = (0, 95, 135, 175, 215, 255)
    cube = [min(range(6), key=lambda i: abs(levels[i] - part)) for part in colour]
    grey = min(max(round((sum(colour) / 3 - 8) / 10), 0), 23)
    cubed = [levels[i] for i in cube]
    greys = [8 + 10 * grey] * 3
    miss = [sum((a - b) ** 2 for a, b in zip(colour, c, strict=True)) for c in (cubed, greys)]
    return 232 + grey if miss[1] < miss[0] else 16 + 36 * cube[0] + 6 * cube[1] + cube[2]
