"""Protocol Buffers' wire format, as much as writing takes."""

from __future__ import annotations

from collections.abc import Iterable

VARINT, BYTES = 0, 2
_MASK = (1 << 64) - 1
_SMALL = [bytes([number]) for number in range(128)]


def varint(number: int) -> bytes:
    """A number; negative ones as 64-bit two's complement."""
    if 0 <= number < 128:
        return _SMALL[number]
    number &= _MASK
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(field: int, number: int) -> bytes:
    """A field that is a number; zero is left out, as proto3 does."""
    return varint(field << 3 | VARINT) + varint(number) if number else b""


def bytes_field(field: int, data: bytes) -> bytes:
    """A field that is a message or a string."""
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def packed_field(field: int, numbers: Iterable[int]) -> bytes:
    """Repeated numbers."""
    return bytes_field(field, b"".join(map(varint, numbers)))
