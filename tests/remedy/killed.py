"""Run something in a child that ends itself by SIGKILL, as the out-of-memory killer would."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


class KillAt:
    """A hook of the journal: the process dies at the n-th moment around its writes."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, _moment: str, _kind: str) -> None:
        self._left -= 1
        if self._left < 0:
            die()


def die() -> None:
    """End this process without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)


def run_killed(run: Callable[[], object]) -> bool:
    """Run in a child; return whether it was killed (else it ended by itself)."""
    child = os.fork()
    if not child:
        try:
            run()
            os._exit(0)
        except BaseException:  # noqa: BLE001 the parent sees only how the child ended
            os._exit(3)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)
