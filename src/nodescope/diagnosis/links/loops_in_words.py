"""Loops in the words of a link."""

from __future__ import annotations

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.judgement.recorded_loops import Looper
from nodescope.quantities import SECOND_NS, format_duration

HOUR_NS = 0.95 * LOOKBACK_NS


def describe_before(case: Case, at_ns: int) -> str:
    """The time that was looked at."""
    length_ns = case.looked_back_ns(at_ns)
    if length_ns >= HOUR_NS:
        return "in the hour before"
    return f"in the {format_duration(length_ns)} before"


def describe_ends(case: Case, looper: Looper) -> str:
    """How often it ended, and how."""
    inside = looper.hidden
    if inside is not None:
        ends = f" ({', '.join(inside.ends[:3])})" if inside.ends else ""
        later = (inside.reported_ns or looper.at_ns) - looper.at_ns
        heard = f", as was heard {format_duration(later)} later" if later > 0 else ""
        return (
            f"runs on, but its child {inside.name} failed {inside.times} times in "
            f"{inside.watched_ns / SECOND_NS:.0f} s{ends}{heard}"
        )
    codes = ", ".join(code for code, _ in looper.exits.most_common(3))
    exits = f" (exit {codes})" if codes else ""
    times = "once" if looper.before == 1 else f"{looper.before} times"
    return f"ended {times} {describe_before(case, looper.at_ns)}{exits}"
