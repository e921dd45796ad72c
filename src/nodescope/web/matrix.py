"""Dense answers: a JSON header and blocks of numbers, each at a multiple of eight bytes.

::

    uint32 (little-endian)   length of the header
    header                   JSON, UTF-8, padded with spaces
    blocks                   as the header's `blocks` says: name, dtype, shape, offset, bytes

Offsets count from the first byte after the header.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from nodescope.records.json import JsonObject

MEDIA_TYPE = "application/x-nodescope-matrix"
_DTYPES = ("uint8", "uint16", "uint32", "float32")
_STEP = 8
_LENGTH = struct.Struct("<I")


class _Block(TypedDict):
    name: str
    dtype: str
    shape: list[int]
    offset: int  # from the end of the header
    bytes: int


def encode_matrix(header: JsonObject, blocks: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of an answer."""
    described: list[_Block] = []
    parts: list[bytes] = []
    offset = 0
    for name, values in blocks.items():
        dtype = values.dtype.name
        if dtype not in _DTYPES:
            raise TypeError(f"block {name!r} is {dtype}, not one of {', '.join(_DTYPES)}")
        data = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        described.append(
            {
                "name": name,
                "dtype": dtype,
                "shape": list(values.shape),
                "offset": offset,
                "bytes": len(data),
            }
        )
        parts.append(data + bytes(-len(data) % _STEP))
        offset += len(parts[-1])
    text = json.dumps({**header, "blocks": described}, separators=(",", ":"), allow_nan=False)
    head = text.encode()
    head += b" " * (-(_LENGTH.size + len(head)) % _STEP)
    return b"".join((_LENGTH.pack(len(head)), head, *parts))


def decode_matrix(data: bytes) -> tuple[JsonObject, dict[str, NDArray[Any]]]:
    """The inverse: the header, and the blocks by name."""
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    header = json.loads(data[_LENGTH.size : start])
    blocks = {}
    for block in header["blocks"]:
        dtype = np.dtype(block["dtype"]).newbyteorder("<")
        at = start + block["offset"]
        count = block["bytes"] // dtype.itemsize
        blocks[block["name"]] = np.frombuffer(data, dtype, count, at).reshape(block["shape"])
    return header, blocks


def narrow(counts: NDArray[np.int64]) -> NDArray[Any]:
    """Counts in the smallest type that an answer may have for them."""
    most = int(counts.max(initial=0))
    if most < 1 << 16:
        return counts.astype(np.uint16)
    return np.minimum(counts, (1 << 32) - 1).astype(np.uint32)
