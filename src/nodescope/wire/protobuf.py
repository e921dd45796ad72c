"""Protocol Buffers, as much as a few small messages take: fields by number, in and out.

(The importer's reader of large profiles lies higher in the house and is built
for other sizes.)
"""

from __future__ import annotations

from collections.abc import Iterator

from nodescope.quantities import SECOND_NS

Value = int | bytes


class NotAMessage(ValueError):
    """The bytes are not a message."""


def decode(data: bytes) -> dict[int, list[Value]]:
    """The fields of a message by number: numbers of varints, bytes of all else."""
    fields: dict[int, list[Value]] = {}
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, kind = key >> 3, key & 7
        value: Value
        if kind == 0:
            value, position = _varint(data, position)
        else:
            length, position = _length(data, position, kind)
            if length > len(data) - position:
                raise NotAMessage("it ends inside a field")
            value = data[position : position + length]
            position += length
        fields.setdefault(number, []).append(value)
    return fields


def _length(data: bytes, position: int, kind: int) -> tuple[int, int]:
    if kind == 2:
        return _varint(data, position)
    if kind in (1, 5):
        return (8 if kind == 1 else 4), position
    raise NotAMessage(f"a field of type {kind}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise NotAMessage("it ends inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise NotAMessage("a number without an end")


def text(fields: dict[int, list[Value]], number: int, limit: int = 1024) -> str | None:
    """A text that says something; the last one counts, as the format demands."""
    value = content(fields, number)
    return value[:limit].decode("utf-8", "replace") if value else None


def content(fields: dict[int, list[Value]], number: int) -> bytes:
    """The bytes of a field; none if it is missing or a number."""
    value = fields.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def whole(fields: dict[int, list[Value]], number: int) -> int:
    """A number; 0, its default, if it is missing."""
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def each(fields: dict[int, list[Value]], number: int) -> Iterator[bytes]:
    """The bytes of a repeated field."""
    for value in fields.get(number, ()):
        if isinstance(value, bytes):
            yield value


def mapping(fields: dict[int, list[Value]], number: int) -> dict[str, str]:
    """A map of texts."""
    pairs = {}
    for entry in each(fields, number):
        pair = decode(entry)
        pairs[text(pair, 1) or ""] = text(pair, 2) or ""
    return pairs


def timestamp_ns(fields: dict[int, list[Value]], number: int) -> int | None:
    """A `google.protobuf.Timestamp` since the epoch; None if missing or before it."""
    data = content(fields, number)
    if not data:
        return None
    moment = decode(data)
    seconds, nanoseconds = whole(moment, 1), whole(moment, 2)
    if not 0 < seconds < 1 << 33 or nanoseconds >= SECOND_NS:
        return None
    return seconds * SECOND_NS + nanoseconds


def encode_text(number: int, value: str) -> bytes:
    """A field that holds a text."""
    data = value.encode()
    return _encode_varint(number << 3 | 2) + _encode_varint(len(data)) + data


def _encode_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
