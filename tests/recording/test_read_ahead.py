"""Reading ahead: the order stays, errors arrive, and whoever stops waits for nothing."""

from __future__ import annotations

from typing import cast

import pytest

from nodescope.recording.part import Part
from nodescope.recording.read_ahead import AHEAD, read_ahead

PARTS = cast(list[Part], [f"part {number}" for number in range(3 * AHEAD)])


def test_parts_come_in_order_each_with_its_own() -> None:
    found = list(read_ahead(PARTS, lambda part: f"table of {part}"))
    assert found == [(part, f"table of {part}") for part in PARTS]
    assert list(read_ahead([], str)) == []


def test_an_error_is_raised_where_its_part_would_come() -> None:
    def read(part: Part) -> Part:
        if part is PARTS[5]:
            raise ValueError("damaged")
        return part

    reading = read_ahead(PARTS, read)
    assert [next(reading)[0] for _ in range(5)] == PARTS[:5]
    with pytest.raises(ValueError, match="damaged"):
        next(reading)


def test_no_more_is_read_than_a_few_ahead() -> None:
    asked: list[Part] = []
    reading = read_ahead(PARTS, asked.append)
    next(reading)
    assert len(asked) <= AHEAD + 1
