"""The samples of some seconds against those of the half hour before them."""

from __future__ import annotations

from collections.abc import Callable

from nodescope.analysis.compare import BASELINE_NS, Change, Comparison, compare
from nodescope.analysis.filter import Filter
from nodescope.diagnosis.case import Case
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recording.part import Part
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window

APART_NS = 2 * SECOND_NS  # what is asked about may have begun a little earlier than seen
FEWEST_WINDOWS = 6  # fewer are too little to call usual


def compare_before(case: Case, span: Window) -> Comparison | None:
    """Compare with the half hour before, or with as much of it as was recorded."""
    before = Window(span.from_ns - BASELINE_NS, span.from_ns - APART_NS)
    baseline = case.recording.overlapping(before)
    if not baseline:
        return None
    found = compare(
        [_part(segment, span) for segment in case.recording.overlapping(span)],
        [_part(segment, before) for segment in baseline],
        (span.from_ns, span.to_ns), (before.from_ns, before.to_ns), Filter(comms=()), listed=0,
    )  # fmt: skip
    return found if found.windows >= FEWEST_WINDOWS else None


def _part(segment: Part, span: Window) -> Callable[[], SampleColumns]:
    return lambda: SampleColumns(segment, span.from_ns, span.to_ns)


def change_of(found: Comparison, comm: str) -> Change | None:
    """How a comm's share of the node changed."""
    return next((each for each in found.changes if (each.kind, each.name) == ("comm", comm)), None)


def rose(change: Change) -> bool:
    """Return whether its share of the node is larger than before."""
    return change.window_share > change.baseline_share


def describe_change(found: Comparison, change: Change) -> str:
    """The change in words, with what it stands on."""
    ratio = f"{change.ratio:.1f}×" if change.ratio else "new"
    length = format_duration(found.windows * found.window_ns)
    sure = f"q = {change.q:.1g}" if change.q is not None and change.q >= 1e-12 else "q < 1e-12"
    clear = sure if change.flagged else "not a clear change"
    return (
        f"{change.window_share:.1%} of the node's samples then, {change.baseline_share:.1%} in "
        f"{length} before ({ratio}, {clear}); {change.as_extreme} of the {found.windows} windows "
        "recorded before were as extreme"
    )
