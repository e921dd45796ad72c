"""Threads that compute for nobody who left, and for many at once only once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from nodescope.web.question import Abandoned, Reply
from nodescope.web.work import MOST_WAITING, PendingAnswer, TooBusy, Work


@pytest.fixture
def work() -> Work:
    return Work(quick=1, slow=1)


def until(begun: threading.Event, go: threading.Event) -> Callable[[PendingAnswer], Reply]:
    def job(task: PendingAnswer) -> Reply:
        begun.set()
        while not go.wait(0.01):
            task.check()
        return Reply(b"done")

    return job


def test_equal_questions_share_one_answer(work: Work) -> None:
    async def run() -> None:
        begun, go = threading.Event(), threading.Event()
        tasks = [work.begin("a", until(begun, go)) for _ in range(5)]
        assert len({id(task) for task in tasks}) == 1
        go.set()
        assert (await tasks[0].future).body == b"done"
        for task in tasks:
            work.leave(task)

    asyncio.run(run())
    work.close()


def test_when_the_last_one_leaves_the_work_ends(work: Work) -> None:
    async def run() -> None:
        begun, never = threading.Event(), threading.Event()
        first = work.begin("a", until(begun, never))
        second = work.begin("a", until(begun, never))
        await asyncio.to_thread(begun.wait, 60)
        work.leave(first)
        assert not second.left.is_set()
        work.leave(second)
        with pytest.raises(Abandoned):
            await asyncio.wait_for(second.future, 60)
        again = work.begin("a", lambda task: Reply(b"anew"))
        assert (await again.future).body == b"anew"
        work.leave(again)

    asyncio.run(run())
    work.close()


def test_what_still_waits_in_the_queue_is_not_begun(work: Work) -> None:
    async def run() -> None:
        begun, go, ran = threading.Event(), threading.Event(), []
        holding = work.begin("a", until(begun, go))

        def job(task: PendingAnswer) -> Reply:
            ran.append(task)
            return Reply(b"")

        waiting = work.begin("b", job)
        work.leave(waiting)
        go.set()
        await holding.future
        with pytest.raises(Abandoned):
            await asyncio.wait_for(waiting.future, 60)
        assert not ran
        work.leave(holding)

    asyncio.run(run())
    work.close()


def test_slow_ones_hold_up_no_quick_ones(work: Work) -> None:
    async def run() -> None:
        begun, go = threading.Event(), threading.Event()
        slow = work.begin("slow", until(begun, go), slow=True)
        quick = work.begin("quick", lambda task: Reply(b"quick"))
        assert (await asyncio.wait_for(quick.future, 60)).body == b"quick"
        assert not slow.future.done()
        go.set()
        await slow.future
        work.leave(slow)
        work.leave(quick)

    asyncio.run(run())
    work.close()


def test_too_many_are_refused(work: Work) -> None:
    async def run() -> None:
        begun, go = threading.Event(), threading.Event()
        tasks = [work.begin(number, until(begun, go)) for number in range(MOST_WAITING)]
        with pytest.raises(TooBusy):
            work.begin("one more", until(begun, go))
        go.set()
        await asyncio.gather(*(task.future for task in tasks))
        for task in tasks:
            work.leave(task)

    asyncio.run(run())
    work.close()
