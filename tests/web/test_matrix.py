from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from nodescope.web.matrix import decode_matrix, encode_matrix, narrow


def test_blocks_come_back_as_they_were() -> None:
    blocks: dict[str, Any] = {
        "a": np.arange(15, dtype=np.uint8).reshape(3, 5),
        "b": np.array([1, 70_000], np.uint32),
        "c": np.array([0.5], np.float32),
    }
    header, found = decode_matrix(encode_matrix({"rows": ["é"]}, blocks))
    assert header["rows"] == ["é"]
    for name, values in blocks.items():
        assert found[name].dtype.name == values.dtype.name
        assert (found[name] == values).all()


def test_everything_lies_at_a_multiple_of_eight() -> None:
    for length in range(9):
        data = encode_matrix({"x": "y" * length}, {"a": np.zeros(3, np.uint8)})
        (size,) = struct.unpack_from("<I", data)
        assert (4 + size) % 8 == 0
        assert len(data) % 8 == 0
        assert json.loads(data[4 : 4 + size])["x"] == "y" * length


def test_only_types_that_the_page_knows() -> None:
    with pytest.raises(TypeError, match="float64"):
        encode_matrix({}, {"a": np.zeros(1)})


def test_counts_take_the_smallest_type() -> None:
    assert narrow(np.array([65_535])).dtype == np.uint16
    assert narrow(np.array([65_536])).dtype == np.uint32
    assert narrow(np.array([1 << 40])).tolist() == [(1 << 32) - 1]
