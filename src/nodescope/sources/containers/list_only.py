"""A runtime that only lets itself be listed: what happened is told from two lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodescope.sources.containers.container import Container, ContainerHappening, find_happenings


class ListedRuntime:
    """Reads again at each poll; `read` raises `SourceError` if it cannot."""

    def __init__(self, read: Callable[[], Mapping[str, Container]]) -> None:
        self.containers: Mapping[str, Container] = {}
        self._read = read
        self._first = True

    def poll(self, wall_ns: int) -> list[ContainerHappening]:
        """Derive the events since the last call from two lists."""
        after = self._read()
        found = [] if self._first else find_happenings(self.containers, after, wall_ns)
        self.containers, self._first = after, False
        return found

    def close(self) -> None:
        """Nothing is held open."""
