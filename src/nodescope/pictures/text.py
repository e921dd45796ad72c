"""Names as text that can do no harm, cut to what fits, and times as people read them."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

from nodescope.quantities import SECOND_NS

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


def iso(moment_ns: int) -> str:
    """ISO 8601 in UTC, to the millisecond."""
    seconds, rest = divmod(moment_ns, SECOND_NS)
    stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{rest // 1_000_000:03d}Z"


def clock(moment_ns: int) -> str:
    """`12:00:05`, in UTC."""
    return datetime.fromtimestamp(moment_ns // SECOND_NS, UTC).strftime("%H:%M:%S")


def percent(ratio: float) -> str:
    """`6.5 %`; what is not zero never reads as zero."""
    if 0 < ratio < 0.0005:
        return "<0.1 %"
    return f"{100 * ratio:.1f} %"


_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


def ticks(from_ns: int, to_ns: int, most: int) -> list[int]:
    """Round moments between two others, at most `most` of them."""
    length = max(to_ns - from_ns, 1)
    step = next((s for s in _STEPS if length <= s * SECOND_NS * max(most, 1)), None)
    step_ns = (step or -(-length // (SECOND_NS * max(most, 1)))) * SECOND_NS
    first = -(-from_ns // step_ns) * step_ns
    return list(range(first, to_ns, step_ns))
