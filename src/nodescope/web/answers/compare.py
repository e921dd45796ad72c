"""A window against another: what changed, and as a flame graph."""

from __future__ import annotations

import functools

from nodescope.analysis.baseline_windows import measure_recorded
from nodescope.analysis.compare import BASELINE_NS
from nodescope.analysis.compare import compare as compare_windows
from nodescope.analysis.flame import Group, flame_of, is_pruned
from nodescope.analysis.flame_rows import FlameNames, FlameRows, whole
from nodescope.errors import UsageError
from nodescope.pictures.answer_size import LARGEST, keep_fitting
from nodescope.pictures.compare import compare_document
from nodescope.quantities import DAY_NS, MILLISECOND_NS
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window
from nodescope.records.tables import NARROW
from nodescope.web.answers.flame_difference import Difference
from nodescope.web.answers.replies import json_reply
from nodescope.web.question import Question, Reply, to_ms

LONGEST_NS = 7 * DAY_NS


def choose_baseline(question: Question) -> Window:
    """The window to compare with: the one named, or the half hour before."""
    from_ns, to_ns = question.moment("base_from"), question.moment("base_to")
    start = question.window.from_ns
    if from_ns is None and to_ns is None:
        return Window(max(0, start - BASELINE_NS), start)
    if from_ns is None or to_ns is None or to_ns <= from_ns:
        raise UsageError(
            "the window to compare with needs a start, and an end after it",
            hint="give base_from_ms and base_to_ms, or neither",
        )
    if to_ns - from_ns > LONGEST_NS:
        raise UsageError("the window to compare with is too long", hint="give at most a week")
    return Window(from_ns, to_ns)


def compare(question: Question) -> Reply:
    """Answer as `nodescope compare --json` does, with the window it was compared with."""
    window, against = question.window, choose_baseline(question)

    def parts(of: Window) -> list[functools.partial[SampleColumns]]:
        return [
            functools.partial(SampleColumns, segment, of.from_ns, of.to_ns)
            for segment in question.recording.overlapping(of)
            if of.length_ns
        ]

    found = compare_windows(
        parts(window),
        parts(against),
        (window.from_ns, window.to_ns),
        (against.from_ns, against.to_ns),
        question.filter,
        listed=question.values["limit"],
        threads=1,  # others have the other core, and two segments at once need memory for two
    )
    rows = keep_fitting(compare_document(found.changes, found.windows), LARGEST - 4096)
    return json_reply(
        {
            "rows": rows,
            "baseline": _baseline(question, against),
            "notes": found.notes,
            "samples": found.samples,
            "baseline_samples": found.baseline_samples,
            "method": found.method,
            "left_off": max(0, found.tests - len(rows)),
        }
    )


def compare_flame(question: Question) -> Reply:
    """The flame graph, with what the baseline had on each path."""
    window, against = question.window, choose_baseline(question)
    names = FlameNames()
    now, before = (_rows(question, each, names) for each in (window, against))
    spans = [
        max(1, measure_recorded(question.overlapping(each), (each.from_ns, each.to_ns)))
        for each in (window, against)
    ]
    # Of many segments narrow paths are not summed: what is missing may be one of them.
    hidden = NARROW * whole(before) if is_pruned(question.recording.overlapping(against)) else 0.0
    difference = Difference(now, before, spans[0] / spans[1], hidden)
    document = difference.document(names, question.values)
    return json_reply({**document, "baseline": _baseline(question, against)})


def _baseline(question: Question, against: Window) -> dict[str, float]:
    """Return the part of the baseline that lies in the recording, and how much was recorded."""
    known = question.snapshot.window
    from_ns, to_ns = max(against.from_ns, known.from_ns), min(against.to_ns, known.to_ns)
    if from_ns >= to_ns:
        return {"from_ms": to_ms(against.to_ns), "to_ms": to_ms(against.to_ns), "recorded_ms": 0.0}
    recorded_ns = measure_recorded(question.overlapping(Window(from_ns, to_ns)), (from_ns, to_ns))
    return {
        "from_ms": to_ms(from_ns),
        "to_ms": to_ms(to_ns),
        "recorded_ms": recorded_ns / MILLISECOND_NS,
    }


def _rows(question: Question, window: Window, names: FlameNames) -> FlameRows:
    count = len(question.recording.overlapping(window)) if window.length_ns else 0
    group: Group = question.values["merge"]
    return flame_of(
        question.recording.samples(window) if count else (),
        question.filter,
        names,
        inverted=question.values["inverted"],
        group=group,
        count=count,
    )
