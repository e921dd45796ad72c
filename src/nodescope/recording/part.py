"""A part of a recording: a stretch of time whose tables can be read by themselves.

This is the small protocol behind every recording. A segment in a folder, a segment in a
bundle (`nodescope.archive.reader`) and a part held in memory (`nodescope.recording.memory`)
implement it; whoever reads sees no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from nodescope.archive.description import Description
from nodescope.archive.layout import parse_opened_ns

if TYPE_CHECKING:
    from nodescope.recording.window import Window


class Part(Protocol):
    """A stretch of a recording: described at once, its tables read when asked for."""

    @property
    def is_open(self) -> bool:
        """Return whether it still grows."""

    @property
    def name(self) -> str:
        """Return its name; names of one recording differ, and sort as they were made."""

    @property
    def description(self) -> Description:
        """Return the facts that are known without reading a table."""

    @property
    def tick_ns(self) -> int:
        """Return the length of one tick of `samples.tick`."""

    @property
    def wall_from_ns(self) -> int:
        """When it starts."""

    @property
    def wall_to_ns(self) -> int:
        """The last moment of it."""

    def wall_ns(self, monotonic_ns: Any) -> Any:
        """Place monotonic times (one, or an array) on the wall clock."""

    def read(self, table: str, columns: Sequence[str] | None = None) -> Any:
        """Return a table as `pyarrow.Table`; `text` columns come dictionary-encoded."""

    def where(self, table: str) -> str:
        """Return where a table is kept, for messages."""


Parts = Sequence[Part]


def overlapping(parts: Parts, window: Window) -> list[Part]:
    """Return the parts that may hold something of the window."""
    return [part for part in parts if _overlaps(part, window)]


def surrounding(parts: Parts, window: Window) -> list[Part]:
    """Return the parts of a window, and those between which it begins or ends, if it does so."""
    touched = overlapping(parts, window)
    begins = min((part.wall_from_ns for part in touched), default=window.to_ns)
    ends = max((part.wall_to_ns for part in touched), default=window.from_ns - 1)
    if begins > window.from_ns:
        earlier = [part for part in parts if starts_before(part, begins)]
        touched = sorted(earlier, key=lambda part: part.wall_to_ns)[-1:] + touched
    if ends < window.to_ns - 1:
        later = [part for part in parts if part.wall_from_ns > ends]
        touched += sorted(later, key=lambda part: part.wall_from_ns)[:1]
    return touched


def may_hold_events(part: Part, window: Window) -> bool:
    """Decide whether a part may hold events of the window, also of before it was recorded."""
    return _overlaps(part, window) or _remembers(part, window)


def find_history(parts: Parts, from_ns: int) -> Window:
    """Return the time before `from_ns` of which there are events: what logs remembered."""
    from nodescope.recording.window import Window  # the recorder has no windows

    since = (part.description.wall_history_ns for part in parts)
    return Window(min([from_ns, *(each for each in since if each is not None)]), from_ns)


def starts_before(part: Part, time_ns: int) -> bool:
    """Decide whether a part starts before a moment; an open one is read only if it may."""
    if part.is_open and time_ns <= parse_opened_ns(part.name):
        return False
    return part.wall_from_ns < time_ns


def _overlaps(part: Part, window: Window) -> bool:
    return starts_before(part, window.to_ns) and part.wall_to_ns >= window.from_ns


def _remembers(part: Part, window: Window) -> bool:
    since = part.description.wall_history_ns
    return since is not None and since < window.to_ns and window.from_ns < part.wall_from_ns
