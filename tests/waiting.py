"""Waiting for what must come true, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_for(condition: Callable[[], Value], what: str, seconds: float = 90.0) -> Value:
    """The first true answer of `condition`; fails by name when it never comes."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"after {seconds:.0f} s still not: {what}")
        time.sleep(0.05)
