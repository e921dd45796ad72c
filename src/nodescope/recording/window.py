"""Windows of wall time, and from when to when a recording goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Window:
    """From one wall time to another, the second excluded."""

    from_ns: int
    to_ns: int

    @property
    def length_ns(self) -> int:
        return self.to_ns - self.from_ns

    def widened(self, by_ns: int) -> Window:
        """Return the same with a margin on both sides."""
        return Window(self.from_ns - by_ns, self.to_ns + by_ns)

    def holds(self, time_ns: int) -> bool:
        """Decide whether a moment lies in it."""
        return self.from_ns <= time_ns < self.to_ns


class Spanning(Protocol):
    """Something that was recorded over some time."""

    @property
    def is_open(self) -> bool:
        """Whether it still grows."""

    @property
    def wall_from_ns(self) -> int:
        """When it starts."""

    @property
    def wall_to_ns(self) -> int:
        """The last moment of it."""


class TimeExtent:
    """From when to when a recording goes; its end is looked up only if asked for."""

    def __init__(self, parts: Sequence[Spanning]) -> None:
        self._sealed = [part for part in parts if not part.is_open]
        self._open = [part for part in parts if part.is_open]

    @cached_property
    def from_ns(self) -> int:
        """When it starts."""
        return min(part.wall_from_ns for part in self._sealed or self._open)

    @cached_property
    def sealed_to_ns(self) -> int:
        """When what is sealed ends; 0 if nothing is."""
        return max((part.wall_to_ns for part in self._sealed), default=0)

    @cached_property
    def to_ns(self) -> int:
        """The moment after the last one recorded."""
        ends = [part.wall_to_ns for part in self._open]
        return max([self.sealed_to_ns, *ends]) + 1

    def clip(self, window: Window) -> Window:
        """Return the part of a window that was recorded; it may be empty."""
        to_ns = window.to_ns
        if to_ns > self.sealed_to_ns:
            to_ns = min(to_ns, self.to_ns)
        return Window(max(window.from_ns, self.from_ns), to_ns)
