"""What was not seen: gaps that a recorder noted, and the time between two of its runs."""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.archive.description import MAX_GAPS, Description, wall_gap
from nodescope.archive.gaps import add_pause
from nodescope.recording.part import Part, Parts, overlapping
from nodescope.recording.window import Window
from nodescope.records.recorder import Gap


def read_gaps(parts: Parts, window: Window) -> list[Gap]:
    """Return the gaps that reach into a window, on the wall clock."""
    before: Description | None = None
    found: list[Gap] = []
    for part in overlapping(parts, window):
        found += add_pause(before, part.description, list(read_part_gaps(part)))
        before = part.description
    return [gap for gap in found if gap.to_ns >= window.from_ns and gap.from_ns < window.to_ns]


def read_part_gaps(part: Part) -> Sequence[Gap]:
    """Return the gaps a part has noted; its description has them whole unless they are many."""
    extent = part.description.tables.get("gaps")
    if extent is None or extent.rows <= min(MAX_GAPS, len(part.description.gaps)):
        return part.description.gaps
    clock = part.description.clock
    return [wall_gap(Gap(**row), clock) for row in part.read("gaps").to_pylist()]
