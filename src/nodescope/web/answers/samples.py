"""Answers from samples: the heatmap, flame graphs, rankings."""

from __future__ import annotations

from nodescope.analysis.flame import Group, find_summed, flame_of, is_pruned
from nodescope.analysis.flame_rows import FlameNames, FlameRows, whole
from nodescope.analysis.heatmap import make_split_heatmap
from nodescope.analysis.top import find_summed as find_ranked
from nodescope.analysis.top import rank
from nodescope.pictures.answer_size import LARGEST
from nodescope.pictures.documents import top_document
from nodescope.records.tables import NARROW
from nodescope.web.answers.flames import Forest, find_top, flame_document
from nodescope.web.answers.replies import json_reply
from nodescope.web.matrix import MEDIA_TYPE, encode_matrix, narrow
from nodescope.web.question import Question, Reply, to_ms

_ROOM = LARGEST - 4096
_REFINED = 32  # segments of which a zoomed path is summed to its last sample
_CELL_BYTES = 8  # two blocks of at most four


def heatmap(question: Question) -> Reply:
    """Samples by second and offset within it: all, and those in the kernel."""
    rows, window = question.values["rows"], question.window
    most = min(question.values["columns"], _ROOM // (rows * _CELL_BYTES))
    made, kernel = make_split_heatmap(
        question.parts(), question.filter, window.from_ns, window.to_ns, rows, most
    )
    counts = narrow(made.counts)
    header = {
        "from_ms": to_ms(made.from_ns),
        "column_ms": to_ms(made.column_ns),
        "columns": made.counts.shape[0],
        "rows": list(range(rows)),
        "row_ms": to_ms(made.column_ns) / rows,
        "scale": 1,
        "most": int(made.counts.max(initial=0)),
        "total": int(made.counts.sum()),
    }
    blocks = {"counts": counts, "kernel": kernel.counts.astype(counts.dtype)}
    return Reply(encode_matrix(header, blocks), MEDIA_TYPE)


def flame(question: Question) -> Reply:
    """Samples by path of functions; of one path, if it is named."""
    values, names = question.values, FlameNames()
    asked = question.recording.overlapping(question.window)
    rows = _rows(question, names, None)
    forest = Forest.of(rows)
    top = find_top(forest, names, values)
    if top is not None and len(asked) <= _REFINED and is_pruned(asked):
        # Narrow paths of the whole are wide ones of this one: sum these as well.
        rows = _rows(question, names, NARROW * int(rows.total[top]) / max(1, whole(rows)))
    return json_reply(flame_document(rows, names, values))


def _rows(question: Question, names: FlameNames, least: float | None) -> FlameRows:
    group: Group = question.values["merge"]
    inverted: bool = question.values["inverted"]
    count = len(question.recording.overlapping(question.window))
    return flame_of(
        question.parts(find_summed(question.filter, group, inverted, count, least)),
        question.filter,
        names,
        inverted=inverted,
        group=group,
        count=count,
        least=least,
    )


def top(question: Question) -> Reply:
    """Rank what ran most."""
    by = question.values["by"]
    entries = rank(question.parts(find_ranked(question.filter, by)), question.filter, by)
    limit = question.values["limit"]
    document, _ = top_document(entries[:limit])
    return json_reply(document)
