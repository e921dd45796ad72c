"""Tables that nobody filled at a moment: never in the hour before, or not since a time."""

from __future__ import annotations

from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.wall_time import format_moment

LAPSED_NS = 150 * SECOND_NS  # every observer fills its table again with each two-minute segment


def describe_lapse(recording: Recording, table: str, what: str, at_ns: int) -> str | None:
    """Return what was not observed, or not since when; None if a table was observed lately."""
    hour = Window(max(at_ns - HOUR_NS, min(at_ns, recording.extent.from_ns)), at_ns + 1)
    spans = recording.coverage(table, hour).spans
    if not spans:
        return what
    last_ns = spans[-1].to_ns
    return f"{what} (since {format_moment(last_ns)})" if at_ns - last_ns > LAPSED_NS else None
