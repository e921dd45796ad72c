"""How much of the time before a moment was recorded, in the words of a claim about it."""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Absence
from nodescope.quantities import format_duration
from nodescope.recording.window import Window

MOSTLY = 0.9  # of a time: readings are apart, and the rest is no hole


def look_before(case: Case, table: str, at_ns: int, length_ns: int) -> Absence:
    """Return how much of the time before a moment a table was recorded for."""
    return case.absence(table, Window(at_ns - length_ns, at_ns))


def describe_look(seen: Absence) -> str:
    """Return `in the 10m before`, or how much of that time was recorded."""
    whole = format_duration(seen.window.length_ns)
    if seen.observed_ns >= MOSTLY * seen.window.length_ns:
        return f"in the {whole} before"
    return f"in the {format_duration(seen.observed_ns)} that were recorded of the {whole} before"
