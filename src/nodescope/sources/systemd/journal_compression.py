"""Compressed fields of journal files: XZ, LZ4 and ZSTD, never more than asked for."""

from __future__ import annotations

import lzma
import struct

from nodescope.errors import MalformedSource

XZ, LZ4, ZSTD = 1, 2, 4  # flags of an object
_XZ_MEMORY = 64 << 20


def decompress(flag: int, payload: bytes, limit: int, path: str) -> bytes:
    """Decompress `payload`; `MalformedSource` if it is damaged or larger than `limit`."""
    try:
        if flag == XZ:
            content = _xz(payload, limit)
        elif flag == LZ4:
            content = _lz4(payload, limit)
        elif flag == ZSTD:
            content = _zstd(payload, limit)
        else:
            raise MalformedSource(path, f"a field is compressed in a way not known: {flag}")
    except (OSError, ValueError, EOFError, lzma.LZMAError, struct.error) as error:
        raise MalformedSource(path, f"a compressed field is damaged: {error}") from error
    if len(content) > limit:
        raise MalformedSource(path, f"a field is larger than {limit} bytes")
    return content


def _xz(payload: bytes, limit: int) -> bytes:
    reader = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    return reader.decompress(payload, max_length=limit + 1)


def _lz4(payload: bytes, limit: int) -> bytes:
    """A block of LZ4 with its size before it, as systemd's `compress_blob_lz4` writes it."""
    import pyarrow as pa  # a recorder has it already; a reader of small fields does without

    (size,) = struct.unpack_from("<Q", payload)
    if size > limit:
        raise ValueError(f"{size} bytes")
    content: bytes = pa.Codec("lz4_raw").decompress(
        payload[8:], decompressed_size=size, asbytes=True
    )
    return content


def _zstd(payload: bytes, limit: int) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(payload), "zstd") as stream:
        content: bytes = stream.read(limit + 1)
    return content
