"""Protocol Buffers: what is written is read again, and any bytes are a message or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.wire import protobuf
from nodescope.wire.protobuf import NotAMessage, varint

_I64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.integers(1, 1000), st.lists(_I64, max_size=20), st.text(max_size=200), _I64)
def test_what_is_written_is_read_again(
    field: int, packed: list[int], text: str, number: int
) -> None:
    data = protobuf.packed_field(field, packed) + protobuf.text_field(field + 1, text)
    data += protobuf.number_field(field + 2, number)
    found = {at: (kind, start, end) for at, kind, start, end in protobuf.fields(data, 0, len(data))}
    values = protobuf.numbers(data, *found[field])
    assert [protobuf.signed(value) for value in values] == packed
    message = protobuf.decode(data)
    assert (protobuf.text(message, field + 1, limit=1000) or "") == text
    assert protobuf.signed(protobuf.whole(message, field + 2)) == number


@given(st.binary(max_size=40))
def test_packed_numbers_are_read_as_one_by_one(data: bytes) -> None:
    one_by_one, position, offset = [], 0, None
    while position < len(data) and offset is None:
        try:
            value, position = protobuf.read_varint(data, position, len(data))
            one_by_one.append(value)
        except NotAMessage as error:
            offset = error.offset
    if offset is None:
        assert protobuf.numbers(data, protobuf.BYTES, 0, len(data)) == one_by_one
    else:
        with pytest.raises(NotAMessage) as caught:
            protobuf.numbers(data, protobuf.BYTES, 0, len(data))
        assert caught.value.offset == offset


def test_repeated_numbers_that_are_not_packed() -> None:
    assert protobuf.numbers(b"", protobuf.VARINT, 7, 0) == [7]
    assert protobuf.numbers(b"", protobuf.FIXED64, 0, 0) == []


@pytest.mark.parametrize(
    ("data", "offset", "why"),
    [
        (b"\x08\x01\x00\x01", 2, "without a number"),
        (b"\x08\x01\x0b", 2, "of type 3"),
        (b"\x08\x01\x12\x05ab", 2, "inside a field"),
        (b"\x08\xff", 1, "inside a number"),
        (b"\x08" + b"\xff" * 11, 1, "no such number"),
        (b"\x09\x01", 0, "inside a field"),
    ],
)
def test_where_bytes_stop_being_a_message(data: bytes, offset: int, why: str) -> None:
    with pytest.raises(NotAMessage, match=why) as caught:
        protobuf.decode(data)
    assert caught.value.offset == offset


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_are_not(data: bytes) -> None:
    try:
        decoded = protobuf.decode(data)
        protobuf.text(decoded, 1)
        protobuf.timestamp_ns(decoded, 1)
        protobuf.mapping(decoded, 2)
    except protobuf.NotAMessage:
        pass  # what was to be shown


def test_messages_of_the_wrong_kind() -> None:
    fields = protobuf.decode(b"\x08\x05" + protobuf.text_field(2, "x" * 200))
    assert protobuf.whole(fields, 1) == 5
    assert protobuf.text(fields, 1) is None
    assert protobuf.whole(fields, 2) == 0
    assert protobuf.text(fields, 2, limit=3) == "xxx"


def test_numbers_of_the_wire_format() -> None:
    assert varint(0) == b"\x00"
    assert varint(300) == b"\xac\x02"
    assert varint(-1) == b"\xff" * 9 + b"\x01"
