"""Ctrl-C while a step is taken: the step is finished first, so that the journal is whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Raise a Ctrl-C that comes inside the block at its end; a second one at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = False

    def wait(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    before = signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
