"""The processes of the timeline: a lane for each of those that ran most in the window."""

from __future__ import annotations

import time

import numpy as np

from nodescope.analysis.process_lanes import ProcessLane, ProcessSeconds, draw_lanes
from nodescope.analysis.sampled_time import derive_sample_seconds
from nodescope.arrays import Bool
from nodescope.pictures.answer_size import cut
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Part
from nodescope.records.json import Json
from nodescope.web.answers.replies import json_reply
from nodescope.web.answers.timeline import PATIENCE_S, EventColumns, choose_columns
from nodescope.web.question import Question, Reply, to_ms

MOST_LANES = 20


def processes(question: Question) -> Reply:
    """Cores that each of the busiest processes used, by column."""
    columns = choose_columns(question.asked, question.values["columns"], SECOND_NS)
    segments = question.overlapping(columns.window)
    counted = _count(question, segments)
    lanes = draw_lanes(
        counted, columns.from_ns, columns.column_ns, columns.count, question.values["limit"]
    )
    sample_s = derive_sample_seconds(question.recording, columns.window)
    per_column = None if sample_s is None else sample_s * SECOND_NS / columns.column_ns
    known = _recorded(counted, columns)
    whole = len(counted) == len(segments)
    return json_reply(
        {
            "from_ms": to_ms(columns.from_ns),
            "column_ms": to_ms(columns.column_ns),
            "unit": "samples" if per_column is None else "cores",
            "complete": whole,
            "processes": [_lane(each, per_column, known) for each in lanes],
        },
        whole=whole,
    )


def _count(question: Question, segments: list[Part]) -> list[ProcessSeconds]:
    """Count the newest segments first; what takes too long comes with the next look."""
    counted: list[ProcessSeconds] = []
    started = time.monotonic()
    for segment in reversed(segments):
        if not question.shelf.has_processes(segment):
            if counted and time.monotonic() - started > PATIENCE_S:
                break
            question.check()
        counted.append(question.shelf.take_processes(segment))
    return counted


def _recorded(counted: list[ProcessSeconds], columns: EventColumns) -> Bool:
    """Which columns were recorded: in the others nothing is known."""
    starts = columns.from_ns + columns.column_ns * np.arange(columns.count)
    known = np.zeros(columns.count, bool)
    for each in counted:
        known |= (starts + columns.column_ns > each.from_ns) & (starts <= each.to_ns)
    return known


def _lane(lane: ProcessLane, per_column: float | None, known: Bool) -> dict[str, Json]:
    values = lane.samples * (1.0 if per_column is None else per_column)
    return {
        "comm": cut(lane.comm),
        "samples": lane.total,
        "values": [
            float(f"{value:.4g}") if there else None
            for value, there in zip(values.tolist(), known.tolist(), strict=True)
        ],
    }
