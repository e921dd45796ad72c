"""Files as blocks of bytes, unpacked on the way: gzip, zstd, bzip2, xz, lz4.

Memory is bounded by the block, whatever a small file unpacks to. A packed file
that ends early, or is damaged, yields all that could be unpacked and then
raises `Torn` with the place.
"""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from nodescope.errors import MalformedSource, source_error

BLOCK_BYTES = 2 << 20
_READ_BYTES = 1 << 20
_STEP_BYTES = 64 << 10  # unpacked at a time; of the step that meets damage nothing comes out

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\xfd7zXZ\0": "xz",
    b"\x04\x22\x4d\x18": "lz4",
}


class Torn(MalformedSource):
    """A packed file that cannot be unpacked to its end."""

    def __init__(self, path: str | Path, reason: str, offset: int) -> None:
        super().__init__(path, f"{reason}, after {offset} bytes unpacked")
        self.offset = offset


def compression_of(head: bytes) -> str | None:
    """How a file is packed, by its first bytes."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def read_head(path: Path, size: int = 64 << 10) -> bytes:
    """The first bytes of what is in a file, unpacked; empty if nothing can be."""
    head = b""
    try:
        for block in read_blocks(path, block_bytes=size):
            head += block
            if len(head) >= size:
                break
    except Torn:
        pass  # whoever reads on will say so
    return head[:size]


def read_blocks(
    path: Path,
    block_bytes: int = BLOCK_BYTES,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[bytes]:
    """The content of a file, unpacked, in blocks of about that size.

    `progress` is told how many bytes of the file itself are done.
    """
    try:
        with path.open("rb") as file:
            packed_as = compression_of(file.read(8))
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            for block in _gather(_unpack(path, file, packed_as), block_bytes):
                yield block
                # Arrow closes what it has read to its end.
                progress(size if file.closed else file.tell())
    except OSError as error:
        raise source_error(path, error) from error


def _gather(pieces: Iterator[bytes], block_bytes: int) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if size >= block_bytes:
                yield b"".join(held)
                held, size = [], 0
    except Torn:
        if held:
            yield b"".join(held)
        raise
    if held:
        yield b"".join(held)


def _unpack(path: Path, file: IO[bytes], packed_as: str | None) -> Iterator[bytes]:
    if packed_as is None:
        while piece := file.read(_READ_BYTES):
            yield piece
    elif packed_as in _INCREMENTAL:
        yield from _unpack_incrementally(path, file, *_INCREMENTAL[packed_as])
    else:
        yield from _unpack_with_arrow(path, file, packed_as)


_INCREMENTAL: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "gzip": (lambda: zlib.decompressobj(31), zlib.error),
    "bz2": (bz2.BZ2Decompressor, OSError),
    "xz": (lambda: lzma.LZMADecompressor(memlimit=128 << 20), lzma.LZMAError),
}


def _unpack_incrementally(
    path: Path, file: IO[bytes], make: Callable[[], Any], failure: type[Exception]
) -> Iterator[bytes]:
    unpacker, done = make(), 0
    started = False  # whether the present member has had any input
    while True:
        packed = file.read(_STEP_BYTES)
        if not packed:
            if started:
                raise Torn(path, "it ends in the middle of its packed data", done)
            return
        while packed or started:
            try:
                piece, packed = _unpack_some(unpacker, packed)
            except failure as error:
                if done and not started:
                    return  # padding after the last member, as tape tools leave it
                raise Torn(path, f"damaged: {error}", done) from error
            started = True
            if piece:
                done += len(piece)
                yield piece
            if unpacker.eof:
                packed = unpacker.unused_data or packed
                unpacker, started = make(), False
                if not packed.strip(b"\0"):
                    packed = b""
            elif not piece and not packed:
                break


def _unpack_some(unpacker: Any, packed: bytes) -> tuple[bytes, bytes]:
    """At most a read's worth of unpacked bytes, and the input that is left."""
    if hasattr(unpacker, "unconsumed_tail"):
        piece = unpacker.decompress(packed, _STEP_BYTES)
        return piece, unpacker.unconsumed_tail
    if not packed and unpacker.needs_input:
        return b"", b""
    return unpacker.decompress(packed, _STEP_BYTES), b""


def _unpack_with_arrow(path: Path, file: IO[bytes], packed_as: str) -> Iterator[bytes]:
    import pyarrow as pa  # 100 ms that plain files need not pay

    done = 0
    stream = pa.CompressedInputStream(pa.PythonFile(file), packed_as)
    while True:
        try:
            piece = stream.read(_STEP_BYTES)
        except (OSError, pa.ArrowException) as error:
            raise Torn(path, f"damaged: {str(error).splitlines()[0]}", done) from error
        if not piece:
            return
        done += len(piece)
        yield piece
