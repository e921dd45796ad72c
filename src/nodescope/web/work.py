"""Where answers are computed: a few threads, and nobody computes for somebody who left.

Quick questions and slow ones wait in queues of their own, so that a diagnosis of twelve
hours holds up no zooming. Equal questions share one answer. When the last one who
waits is gone, the work is told so and ends at the next table it would read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from nodescope.archive.memory import give_memory_back
from nodescope.errors import NodescopeError
from nodescope.web.question import Abandoned, Reply

QUICK, SLOW = 2, 1  # threads: a question may need a hundred megabytes while it is answered
MOST_WAITING = 64
_TRIM_S = 1.0  # after the work, free memory is given back


class TooBusy(NodescopeError):
    """So many wait that another one would wait too long."""


@dataclass(eq=False)
class PendingAnswer:
    """Work that somebody waits for."""

    job: Callable[[PendingAnswer], Reply]
    waiting: int = 0
    progress: tuple[int, int] = (0, 0)
    left: threading.Event = field(default_factory=threading.Event)
    future: asyncio.Future[Reply] = field(init=False)

    def check(self) -> None:
        """Raise if nobody waits any more."""
        if self.left.is_set():
            raise Abandoned

    def show(self, done: int, total: int) -> None:
        """Say how far it is."""
        self.check()
        self.progress = (done, total)

    def run(self) -> Reply:
        """Compute; in a thread."""
        self.check()
        return self.job(self)


class Work:
    """The threads, and what is under way."""

    def __init__(self, quick: int = QUICK, slow: int = SLOW) -> None:
        self._quick = ThreadPoolExecutor(quick, "quick")
        self._slow = ThreadPoolExecutor(slow, "slow")
        self.looking = ThreadPoolExecutor(4, "looking")  # for what takes a moment
        self._under_way: dict[Hashable, PendingAnswer] = {}
        self._trimming = False
        self._closed = False

    def begin(
        self, key: Hashable, job: Callable[[PendingAnswer], Reply], *, slow: bool = False
    ) -> PendingAnswer:
        """Have it computed, or join those who wait for the same; `leave` when no longer."""
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= MOST_WAITING:
                raise TooBusy("too many questions at once", hint="try again in a few seconds")
            task = self._under_way[key] = PendingAnswer(job)
            pool = self._slow if slow else self._quick
            task.future = asyncio.get_running_loop().run_in_executor(pool, task.run)
            task.future.add_done_callback(lambda done: self._done(key, task, done))
        task.waiting += 1
        return task

    def leave(self, task: PendingAnswer) -> None:
        """One less waits; the last one's leaving ends the work."""
        task.waiting -= 1
        if not task.waiting and not task.future.done():
            task.left.set()
            for key, each in list(self._under_way.items()):
                if each is task:
                    del self._under_way[key]

    def _done(self, key: Hashable, task: PendingAnswer, future: asyncio.Future[Reply]) -> None:
        if self._under_way.get(key) is task:
            del self._under_way[key]
        if not future.cancelled():
            future.exception()  # seen: whoever waited was told, or nobody did
        if not self._trimming:
            self._trimming = True
            asyncio.get_running_loop().call_later(_TRIM_S, self._trim)

    def _trim(self) -> None:
        self._trimming = False
        if not self._closed:
            self.looking.submit(give_memory_back)

    def close(self) -> None:
        """Let go of everything."""
        self._closed = True
        for task in self._under_way.values():
            task.left.set()
        for pool in (self._quick, self._slow, self.looking):
            pool.shutdown(wait=False, cancel_futures=True)
