"""How much of the time before a moment was recorded, in the words of a claim about it."""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.quantities import format_duration
from nodescope.recording.window import Window

MOSTLY = 0.9  # of a time: readings are apart, and the rest is no hole


def describe_seen(case: Case, table: str, at_ns: int, length_ns: int) -> str:
    """Return `in the 10m before`, or how much of that time a table was recorded for."""
    before = Window(at_ns - length_ns, at_ns)
    seen_ns = case.recording.coverage(table, before).observed_ns
    whole = format_duration(length_ns)
    if seen_ns >= MOSTLY * length_ns:
        return f"in the {whole} before"
    return f"in the {format_duration(seen_ns)} that were recorded of the {whole} before"
