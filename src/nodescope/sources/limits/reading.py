"""What is read of a limit or of a counter of trouble."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """How much of a limited thing is used; `scope` is `node`, a mount point or a cgroup."""

    name: str
    scope: str
    used: int
    most: int | None  # None: not limited

    @property
    def share(self) -> float:
        """The part of it that is used; 0 if it is not limited."""
        return self.used / self.most if self.most else 0.0


class TroubleCount(NamedTuple):
    """A counter that only trouble raises; `subject` is empty for the node."""

    name: str
    subject: str
    value: int
