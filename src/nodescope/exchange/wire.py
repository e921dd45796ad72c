"""Protocol Buffers' wire format, as much as reading a message takes.

A message is fields: a varint key (number and type), then a varint, eight or four
bytes, or a length and so many bytes (protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK = (1 << 64) - 1


class WireError(ValueError):
    """Not a message; `offset` is where it stopped being one."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """A number and where it ended; at most ten bytes."""
    value = shift = 0
    for at in range(position, min(end, position + 10)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at + 1
        shift += 7
    raise WireError(
        "it ends inside a number" if position + 10 > end else "no such number", position
    )


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Each field: number, type, value (a varint's) or start of its bytes, and their end."""
    position = start
    while position < end:
        at = position
        key, position = read_varint(data, position, end)
        number, kind = key >> 3, key & 7
        if not number:
            raise WireError("a field without a number", at)
        if kind == VARINT:
            value, position = read_varint(data, position, end)
            yield number, kind, value, position
            continue
        if kind == BYTES:
            length, position = read_varint(data, position, end)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"a field of type {kind}", at)
        if length > end - position:
            raise WireError("it ends inside a field", at)
        yield number, kind, position, position + length
        position += length


def numbers(data: bytes, kind: int, value: int, end: int) -> list[int]:
    """The values of a repeated number field, packed or not."""
    if kind == VARINT:
        return [value]
    if kind != BYTES:
        return []
    found = []
    position = value
    while position < end:
        number, position = read_varint(data, position, end)
        found.append(number)
    return found


def signed(value: int) -> int:
    """An int64 as it was meant."""
    return value - (1 << 64) if value >> 63 else value
