"""A file that was made for one answer: sent in pieces, and taken away when sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

_PIECE = 256 << 10


class FileReply(StreamingResponse):
    """Streams a file with its length, and removes it, sent whole or not."""

    def __init__(self, path: Path, media_type: str, headers: Mapping[str, str]) -> None:
        self._path = path
        length = {"Content-Length": str(path.stat().st_size)}
        super().__init__(_pieces(path), 200, {**headers, **length}, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._path.unlink(missing_ok=True)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(path.open, "rb")
    with file:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece
