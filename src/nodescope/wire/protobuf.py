"""Protocol Buffers without a schema: messages taken apart and put together, field by field.

A message is fields: a varint key (number and type), then a varint, eight or four
bytes, or a length and so many bytes (protobuf.dev/programming-guides/encoding).

Two ways to read it. `fields` walks over a message in place and copies nothing: for profiles
of a hundred megabytes. `decode` collects a small message into a dict, which `text`, `whole`
and the others ask. Writing makes bytes: `number_field`, `bytes_field`, `packed_field`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nodescope.quantities import SECOND_NS

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK = (1 << 64) - 1
_LONGEST = 10  # bytes of a varint
_SMALL = [bytes([number]) for number in range(128)]

Value = int | bytes
Message = dict[int, list[Value]]


class NotAMessage(ValueError):
    """The bytes are not a message; `offset` is where they stopped being one."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


# -- reading in place ------------------------------------------------------------


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield each field: number, type, value (a varint's) or start of its bytes, and their end."""
    position = start
    while position < end:
        at = position
        key = data[position]
        if key < 0x80:
            position += 1
        else:
            key, position = read_varint(data, position, end)
        number, kind = key >> 3, key & 7
        if not number:
            raise NotAMessage("a field without a number", at)
        if kind == VARINT:
            value, position = read_varint(data, position, end)
            yield number, kind, value, position
            continue
        if kind == BYTES:
            length, position = read_varint(data, position, end)
        elif kind in (FIXED64, FIXED32):
            length = 8 if kind == FIXED64 else 4
        else:
            raise NotAMessage(f"a field of type {kind}", at)
        if length > end - position:
            raise NotAMessage("it ends inside a field", at)
        yield number, kind, position, position + length
        position += length


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Return a number and where it ends; it has at most ten bytes."""
    value = shift = 0
    for at in range(position, min(end, position + _LONGEST)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at + 1
        shift += 7
    raise _unfinished(position, end)


def numbers(data: bytes, kind: int, value: int, end: int) -> list[int]:
    """Return the values of a repeated number field, packed or not."""
    if kind == VARINT:
        return [value]
    if kind != BYTES:
        return []
    found = []
    number = shift = 0
    for at, byte in enumerate(data[value:end], value):
        if byte < 0x80:
            found.append((number | byte << shift) & _MASK)
            number = shift = 0
        else:
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift == 7 * _LONGEST:
                raise _unfinished(at + 1 - _LONGEST, end)
    if shift:
        raise _unfinished(end - shift // 7, end)
    return found


def _unfinished(position: int, end: int) -> NotAMessage:
    cut = position + _LONGEST > end
    return NotAMessage("it ends inside a number" if cut else "no such number", position)


def signed(value: int) -> int:
    """Return an int64 as it was meant."""
    return value - (1 << 64) if value >> 63 else value


# -- small messages ----------------------------------------------------------------


def decode(data: bytes) -> Message:
    """Return the fields of a message by number: numbers of varints, bytes of all else."""
    message: Message = {}
    for number, kind, value, end in fields(data, 0, len(data)):
        message.setdefault(number, []).append(value if kind == VARINT else data[value:end])
    return message


def text(message: Message, number: int, limit: int = 1024) -> str | None:
    """Return a text that says something; the last one counts, as the format demands."""
    value = content(message, number)
    return value[:limit].decode("utf-8", "replace") if value else None


def content(message: Message, number: int) -> bytes:
    """Return the bytes of a field; none if it is missing or a number."""
    value = message.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def whole(message: Message, number: int) -> int:
    """Return a number; 0, its default, if it is missing."""
    value = message.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def each(message: Message, number: int) -> Iterator[bytes]:
    """Yield the bytes of a repeated field."""
    for value in message.get(number, ()):
        if isinstance(value, bytes):
            yield value


def mapping(message: Message, number: int) -> dict[str, str]:
    """Return a map of texts."""
    pairs = {}
    for entry in each(message, number):
        pair = decode(entry)
        pairs[text(pair, 1) or ""] = text(pair, 2) or ""
    return pairs


def timestamp_ns(message: Message, number: int) -> int | None:
    """Return a `google.protobuf.Timestamp` since the epoch; None if missing or before it."""
    data = content(message, number)
    if not data:
        return None
    moment = decode(data)
    seconds, nanoseconds = whole(moment, 1), whole(moment, 2)
    if not 0 < seconds < 1 << 33 or nanoseconds >= SECOND_NS:
        return None
    return seconds * SECOND_NS + nanoseconds


# -- writing -----------------------------------------------------------------------


def varint(number: int) -> bytes:
    """Encode a number; negative ones as 64-bit two's complement."""
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
    """Encode a field that is a number; zero is left out, as proto3 does."""
    return varint(field << 3 | VARINT) + varint(number) if number else b""


def bytes_field(field: int, data: bytes) -> bytes:
    """Encode a field that is a message or a string."""
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def packed_field(field: int, numbers: Iterable[int]) -> bytes:
    """Encode repeated numbers."""
    return bytes_field(field, b"".join(map(varint, numbers)))


def text_field(field: int, value: str) -> bytes:
    """Encode a field that is a text."""
    return bytes_field(field, value.encode())
