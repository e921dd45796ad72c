"""Bytes that strangers wrote, made fit for a person's terminal.

Undecodable bytes are replaced; control characters, and those that turn text
around or break lines, are made visible as escapes. Whatever comes out can be
stored, sorted and printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_LINE_BYTES = 64 << 10

_ESCAPES = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (
        *range(32),
        *range(127, 160),
        0x200E, 0x200F,  # left-to-right and right-to-left marks
        *range(0x2028, 0x202F),  # line separators, and what overrides direction
        *range(0x2066, 0x206A),
        0xFEFF,
    )
}  # fmt: skip
_ESCAPES[ord("\t")] = " "
_ESCAPES[ord("\n")] = "\\n"


def clean(raw: bytes, limit: int = MAX_LINE_BYTES) -> str:
    """Text of at most `limit` bytes that cannot do anything but be read."""
    return clean_text(raw[:limit].decode("utf-8", "replace"), limit)


def clean_text(text: str, limit: int = MAX_LINE_BYTES) -> str:
    """The same for text; a lone surrogate, which JSON can smuggle in, is replaced too."""
    text = text[:limit]
    if text.isascii() and text.isprintable():
        return text
    visible = text.translate(_ESCAPES)[:limit]
    return visible.encode("utf-8", "replace").decode("utf-8")


def split_lines(
    blocks: Iterable[bytes], limit: int = MAX_LINE_BYTES
) -> Iterator[tuple[int, bytes, bool]]:
    """Lines with the offset each begins at, and whether a line end was seen.

    Of a longer line than `limit` the first `limit` bytes are kept; the rest is
    passed over without being held.
    """
    carry, start = b"", 0
    skipped = 0  # bytes of the present line that were let go
    for block in blocks:
        pieces = block.split(b"\n")
        for number, piece in enumerate(pieces):
            room = limit - len(carry)
            carry = carry + piece[:room] if carry else piece[:limit]
            skipped += max(len(piece) - max(room, 0), 0)
            if number < len(pieces) - 1:
                length = len(carry) + skipped
                yield start, carry.removesuffix(b"\r"), True
                start += length + 1
                carry, skipped = b"", 0
    if carry or skipped:
        yield start, carry.removesuffix(b"\r"), False
