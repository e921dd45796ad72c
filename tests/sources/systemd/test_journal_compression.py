from __future__ import annotations

import lzma
import struct

import pyarrow as pa
import pytest

from nodescope.errors import MalformedSource
from nodescope.sources.systemd.journal_compression import LZ4, XZ, ZSTD, decompress

_TEXT = b"MESSAGE=" + b"what the agent said " * 300


def _compressed(flag: int, text: bytes) -> bytes:
    """As systemd's compress_blob does it."""
    if flag == XZ:
        return lzma.compress(text, format=lzma.FORMAT_XZ)
    if flag == LZ4:
        block: bytes = pa.Codec("lz4_raw").compress(text, asbytes=True)
        return struct.pack("<Q", len(text)) + block
    frame: bytes = pa.Codec("zstd").compress(text, asbytes=True)
    return frame


@pytest.mark.parametrize("flag", [XZ, LZ4, ZSTD])
def test_a_field_comes_back(flag: int) -> None:
    assert decompress(flag, _compressed(flag, _TEXT), 1 << 20, "x") == _TEXT


@pytest.mark.parametrize("flag", [XZ, LZ4, ZSTD])
def test_a_field_that_grows_too_large_is_refused(flag: int) -> None:
    bomb = _compressed(flag, bytes(8 << 20))
    with pytest.raises(MalformedSource):
        decompress(flag, bomb, 1 << 20, "x")


@pytest.mark.parametrize("flag", [XZ, LZ4, ZSTD, 7])
def test_a_damaged_field_is_refused(flag: int) -> None:
    with pytest.raises(MalformedSource):
        decompress(flag, b"\xff" * 60, 1 << 20, "x")
