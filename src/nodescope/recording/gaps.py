"""Gaps: those that a recorder noted, and the time between two of its runs."""

from __future__ import annotations

from nodescope.archive.gaps import find_gaps, read_part_gaps
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Parts, overlapping, surrounding
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import Gap

TOLD_NS = 30 * SECOND_NS  # a gap is noted with the flush after it, perhaps in the next part


def read_gaps(parts: Parts, window: Window) -> list[Gap]:
    """Return the gaps that reach into a window, on the wall clock."""
    found = find_gaps(surrounding(parts, Window(window.from_ns, window.to_ns + TOLD_NS)))
    return [gap for gap in found if gap.to_ns >= window.from_ns and gap.from_ns < window.to_ns]


def read_noted_gaps(parts: Parts, window: Window) -> list[Gap]:
    """Return the gaps that the recorder noted of a window, or just before or after it."""
    touched = overlapping(parts, Window(window.from_ns, window.to_ns + TOLD_NS))
    return [gap for part in touched for gap in read_part_gaps(part)]
