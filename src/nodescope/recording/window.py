"""Windows of wall time, and from when to when a recording goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from nodescope.errors import UsageError
from nodescope.quantities import SECOND_NS
from nodescope.records.view import Last, Moment, When

MARGIN_NS = 5 * SECOND_NS  # around a moment for which none is given


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


class Ends(Protocol):
    """Something with a beginning and an end; either may be looked up only if asked for."""

    @property
    def from_ns(self) -> int:
        """When it starts."""

    @property
    def to_ns(self) -> int:
        """The moment after its last one."""


def window_of(when: When | None, whole: Ends, since_ns: int | None = None) -> Window:
    """Return the window that was asked for of a recording; all of it if none was.

    `since_ns` is where it begins if not where the recording does.
    """
    if isinstance(when, Moment):
        margin_ns = MARGIN_NS if when.margin_ns is None else when.margin_ns
        return Window(when.at_ns - margin_ns, when.at_ns + margin_ns)
    if isinstance(when, Last):
        return Window(whole.to_ns - when.length_ns, whole.to_ns)
    from_ns = None if when is None else when.from_ns
    to_ns = None if when is None else when.to_ns
    if from_ns is not None and to_ns is not None and to_ns <= from_ns:
        raise UsageError("the window ends before it starts", hint="its start is the earlier one")
    if from_ns is None:
        from_ns = whole.from_ns if since_ns is None else since_ns
    return Window(from_ns, whole.to_ns if to_ns is None else to_ns)


class Spanning(Protocol):
    """Something that was recorded over some time."""

    @property
    def is_open(self) -> bool:
        """Return whether it still grows."""

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

    @property
    def grows(self) -> bool:
        """Return whether a part of it is open: its last seconds may not be on disk yet."""
        return bool(self._open)

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
