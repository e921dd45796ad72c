"""Wait for what must come true, however slow the machine is, and notice at once who died."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")

_TAIL_CHARACTERS = 4000


def wait_for(
    condition: Callable[[], Value | None],
    what: str,
    seconds: float = 90.0,
    *,
    process: subprocess.Popen[bytes] | subprocess.Popen[str] | None = None,
    log: Path | None = None,
) -> Value:
    """Return the first true answer of `condition`.

    Fail after `seconds`, or as soon as `process`, which has to make it true, has ended: with
    its exit code and the tail of its `log`.
    """
    deadline = time.monotonic() + seconds
    while True:
        # Asked before the condition: what a process did just before its end counts.
        code = None if process is None else process.poll()
        before_s = time.thread_time()
        answer = condition()
        if answer:
            return answer
        if code is not None:
            raise AssertionError(f"ended with exit code {code} before: {what}{_tail(log)}")
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds:.0f} s still not: {what}{_tail(log)}")
        # A costly question is asked less often: what is waited for needs the core.
        time.sleep(min(1.0, max(0.05, 4 * (time.thread_time() - before_s))))


def _tail(log: Path | None) -> str:
    if log is None:
        return ""
    text = log.read_text("utf-8", "replace") if log.exists() else ""
    return f"\n{log}:\n{text[-_TAIL_CHARACTERS:] or '(empty)'}"
