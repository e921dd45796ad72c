"""Following a recording that grows: an event whenever it did, at most a second later."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

from nodescope.errors import ArchiveError
from nodescope.web.question import to_ms
from nodescope.web.server_sent_events import HEARTBEAT, encode_event
from nodescope.web.snapshot import ServedArchive
from nodescope.web.work import Work

LOOK_S = 0.5
HEARTBEAT_S = 10.0


async def follow(
    recording: ServedArchive, work: Work, stopping: threading.Event
) -> AsyncIterator[bytes]:
    """`recording` whenever it grew, `gone` when it is not there any more, comments else."""
    loop = asyncio.get_running_loop()
    told: dict[str, Any] | None = None
    spoke_s = time.monotonic()
    while not stopping.is_set():
        seen = await loop.run_in_executor(work.looking, _look, recording)
        if seen != told:
            told, spoke_s = seen, time.monotonic()
            yield encode_event("gone" if "error" in seen else "recording", seen)
        elif time.monotonic() - spoke_s > HEARTBEAT_S:
            spoke_s = time.monotonic()
            yield HEARTBEAT
        await asyncio.sleep(LOOK_S)


def _look(recording: ServedArchive) -> dict[str, Any]:
    try:
        snapshot = recording.snapshot()
        return {
            "from_ms": to_ms(snapshot.window.from_ns),
            "to_ms": to_ms(snapshot.window.to_ns),
            "revision": snapshot.revision,
            "live": snapshot.live,
        }
    except ArchiveError as error:
        return {"error": str(error), "hint": error.hint}
