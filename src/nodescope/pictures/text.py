"""Names as text that can do no harm, cut to what fits."""

from __future__ import annotations

import unicodedata

LONGEST_NAME = 512  # characters of a name that any answer repeats

# Controls, format characters (they turn text around), surrogates, line separators.
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def visible(text: str, longest: int = LONGEST_NAME) -> str:
    r"""The text with everything that is not a visible character written out, as `\x1b`."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spelled(character) for character in text)


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def columns_of(text: str) -> int:
    """How many columns of a terminal a visible text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Me":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int) -> str:
    """A visible text in at most `width` columns; what is cut away shows as `…`."""
    if columns_of(text) <= width:
        return text
    if width < 1:
        return ""
    taken, used = [], 0
    for character in text:
        wide = _columns(character)
        if used + wide > width - 1:
            break
        taken.append(character)
        used += wide
    return "".join(taken) + "…"


def fit_end(text: str, width: int) -> str:
    """The end of a visible text in at most `width` columns: of a path, its last parts."""
    return text if columns_of(text) <= width else fit(text[::-1], width)[::-1]


def pad(text: str, width: int) -> str:
    """A visible text in exactly `width` columns."""
    fitting = fit(text, width)
    return fitting + " " * (width - columns_of(fitting))


def percent(ratio: float) -> str:
    """`6.5 %`; what is not zero never reads as zero."""
    if 0 < ratio < 0.0005:
        return "<0.1 %"
    return f"{100 * ratio:.1f} %"
