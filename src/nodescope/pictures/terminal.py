"""The abilities of the terminal, and painting for it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TextIO

from nodescope.pictures.colour import Colour, nearest_of_256

Depth = Literal["none", "256", "true"]
RESET = "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Its size, its colours, and whether it can show more than ASCII."""

    width: int = 100
    height: int = 40
    colours: Depth = "none"
    unicode: bool = True

    def paint(self, text: str, ink: Colour | None = None, paper: Colour | None = None) -> str:
        """The text in colours, where there are any."""
        if self.colours == "none" or (ink is None and paper is None):
            return text
        codes = [self._code(38, ink)] if ink is not None else []
        codes += [self._code(48, paper)] if paper is not None else []
        return f"\x1b[{';'.join(codes)}m{text}{RESET}"

    def _code(self, which: int, colour: Colour) -> str:
        if self.colours == "true":
            return "{};2;{};{};{}".format(which, *colour)
        return f"{which};5;{nearest_of_256(colour)}"

    def faint(self, text: str) -> str:
        """Text of the second order: axes, units."""
        return text if self.colours == "none" else f"\x1b[2m{text}{RESET}"

    def bold(self, text: str) -> str:
        """Headings."""
        return text if self.colours == "none" else f"\x1b[1m{text}{RESET}"


def detect_terminal(stream: TextIO, environ: Mapping[str, str]) -> Terminal:
    """Look at a stream and the environment: NO_COLOR, FORCE_COLOR, COLORTERM, TERM."""
    width, height = shutil.get_terminal_size((100, 40))
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "")
    return Terminal(
        width=max(width, 40),
        height=max(height, 12),
        colours=_depth(stream, environ),
        unicode=encoding.startswith("utf"),
    )


def _depth(stream: TextIO, environ: Mapping[str, str]) -> Depth:
    if environ.get("NO_COLOR"):
        return "none"
    forced = environ.get("FORCE_COLOR", "0") not in ("", "0")
    if not forced and (not stream.isatty() or environ.get("TERM") in (None, "dumb")):
        return "none"
    return "true" if environ.get("COLORTERM") in ("truecolor", "24bit") else "256"


def bar(share: float, width: int, *, unicode: bool = True) -> str:
    """A bar of `share` of the width, to an eighth of a column; never longer than it."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    if not unicode:
        return ("#" * round(eighths / 8)).ljust(width)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width)
