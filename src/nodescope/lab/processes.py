"""Wait for the processes of a run; the run ends as soon as one has ended that it needs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from nodescope.errors import UsageError

Process = subprocess.Popen[bytes]
Value = TypeVar("Value")

_PATIENCE_S = 90.0
_PAUSE_S = 0.05
_TAIL_CHARACTERS = 500


def wait_until_ready(
    process: Process,
    name: str,
    ready: Callable[[], Value | None],
    *,
    log: Path | None = None,
    hint: str | None = None,
) -> Value:
    """Return the first true answer of `ready`; refuse when the process ends before it comes."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        code = process.poll()  # before the question: what it did just before its end counts
        answer = ready()
        if answer:
            return answer
        if code is not None:
            raise UsageError(f"{name} ended with exit code {code}{_tail(log)}", hint=hint)
        if time.monotonic() > deadline:
            waited = f"{name} was not ready after {_PATIENCE_S:.0f} s"
            raise UsageError(f"{waited}{_tail(log)}", hint=hint)
        time.sleep(_PAUSE_S)


def wait_for_success(process: Process, name: str) -> None:
    """Wait until the process ends; refuse when it failed."""
    if code := process.wait():
        raise UsageError(f"{name} ended with exit code {code}")


def check_alive(lasting: Mapping[str, Process]) -> None:
    """Refuse when one of these processes has ended."""
    for name, process in lasting.items():
        code = process.poll()
        if code is not None:
            raise UsageError(f"{name} ended with exit code {code} during the run")


def sleep_beside(lasting: Mapping[str, Process], seconds: float) -> None:
    """Sleep; refuse as soon as one of these processes has ended."""
    end = time.monotonic() + seconds
    check_alive(lasting)
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _PAUSE_S))
        check_alive(lasting)


def _tail(log: Path | None) -> str:
    if log is None:
        return ""
    said = log.read_text(errors="replace")[-_TAIL_CHARACTERS:].strip()
    return f": {said or 'it reported nothing'}"
