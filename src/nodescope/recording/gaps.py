"""Gaps: those that a recorder noted, and the time between two of its runs."""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.archive.description import MAX_GAPS, MAX_REASON, Description, wall_gap
from nodescope.archive.gaps import add_pause
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Part, Parts, overlapping, surrounding
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import Gap

TOLD_NS = 30 * SECOND_NS  # a gap is noted with the flush after it, perhaps in the next part


def read_gaps(parts: Parts, window: Window) -> list[Gap]:
    """Return the gaps that reach into a window, on the wall clock."""
    before: Description | None = None
    found: list[Gap] = []
    for part in surrounding(parts, Window(window.from_ns, window.to_ns + TOLD_NS)):
        found += add_pause(before, part.description, list(read_part_gaps(part)))
        before = part.description
    return [gap for gap in found if gap.to_ns >= window.from_ns and gap.from_ns < window.to_ns]


def read_noted_gaps(parts: Parts, window: Window) -> list[Gap]:
    """Return the gaps that the recorder noted of a window, or just before or after it."""
    touched = overlapping(parts, Window(window.from_ns, window.to_ns + TOLD_NS))
    return [gap for part in touched for gap in read_part_gaps(part)]


def read_part_gaps(part: Part) -> Sequence[Gap]:
    """Return the gaps a part has noted; its description has them unless they are many or long."""
    described = part.description.gaps
    extent = part.description.tables.get("gaps")
    whole = extent is None or extent.rows <= min(MAX_GAPS, len(described))
    if whole and all(len(gap.reason) < MAX_REASON for gap in described):
        return described
    clock = part.description.clock
    noted = [wall_gap(Gap(**row), clock) for row in part.read("gaps").to_pylist()]
    damaged = described[min(len(noted), MAX_GAPS) :]  # tables: the description alone has those
    return [*noted, *damaged]
