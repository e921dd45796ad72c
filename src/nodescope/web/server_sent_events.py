"""Server-sent events: one of them as bytes, and a task's progress as a stream of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from nodescope.errors import NodescopeError
from nodescope.web.work import PendingAnswer, Work

EVENT_STREAM = "text/event-stream"
_PROGRESS_S = 0.3
HEARTBEAT = b": still here\n\n"


def encode_event(name: str, document: Any) -> bytes:
    """One event."""
    return encode_text(name, json.dumps(document, separators=(",", ":"), allow_nan=False))


def encode_text(name: str, text: str) -> bytes:
    """One event of a document that is JSON already, on one line."""
    return f"event: {name}\ndata: {text}\n\n".encode()


async def stream_task(work: Work, task: PendingAnswer) -> AsyncIterator[bytes]:
    """`progress` until it is done, then `result`, or `failed`."""
    told: tuple[int, int] | None = None
    try:
        while not task.future.done():
            done, total = task.progress
            if (done, total) != told:
                told = (done, total)
                yield encode_event("progress", {"done": done, "total": total})
            else:
                yield HEARTBEAT
            await asyncio.wait({task.future}, timeout=_PROGRESS_S)
        try:
            reply = task.future.result()
        except NodescopeError as error:
            yield encode_event("failed", {"error": str(error), "hint": error.hint})
        else:
            yield encode_text("result", reply.body.decode())
    finally:
        work.leave(task)
