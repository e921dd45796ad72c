"""The JSON answers of the views. None is larger than 2 MB, whatever the archive.

Each function returns the document and, where something had to go so that it
fits, a sentence that says what.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nodescope.arrays import F64
from nodescope.numbering import count_distinct, distinct
from nodescope.pictures.answer_size import LARGEST, cut, fit_list, size
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES
from nodescope.records.json import Json
from nodescope.wall_time import format_moment

if TYPE_CHECKING:  # a command imports the analysis that it shows, and no other
    from nodescope.analysis.cores import CoreShares
    from nodescope.analysis.flame_node import FlameNode
    from nodescope.analysis.flame_rows import FlameNames, FlameRows
    from nodescope.analysis.heatmap import Heatmap
    from nodescope.analysis.top import TopEntry
    from nodescope.records.details import Details
    from nodescope.records.event import Event

HEATMAP_CELLS = 250_000  # of at most seven digits and a comma
CORES_CELLS = 280_000  # cores × intervals × states, of at most six characters and a comma
MEMORY_CELLS = 4_000_000
DEEPEST = 400  # functions of a path; JSON writers and readers recurse

_NODE_BYTES = len('{"name":,"value":,"children":[],"module":,"kernel":false},') + 19
_ROOT_BYTES = 200

Document = dict[str, Json]
Answer = tuple[object, str | None]


def heatmap_document(heatmap: Heatmap) -> Answer:
    """`counts[column][row]`; `columns` are seconds after `from`."""
    width_s = heatmap.column_ns // SECOND_NS
    columns, rows = heatmap.counts.shape
    document = {
        "from": format_moment(heatmap.from_ns),
        "from_ns": heatmap.from_ns,
        "columns": list(range(0, columns * width_s, width_s)),
        "column_ns": heatmap.column_ns,
        "rows": rows,
        "counts": heatmap.counts.tolist(),
    }
    if width_s == 1:
        return document, None
    return document, f"a column is {width_s} s wide, so that the answer stays small"


def cores_document(shares: CoreShares, asked_ns: int) -> Answer:
    """Each state as `[cpu][interval]`, null where nothing was read; `total` is busy."""
    from nodescope.analysis.cores import coarsen

    document = _cores(shares)
    while size(document) > LARGEST:
        shares = coarsen(shares)
        document = _cores(shares)
    if shares.interval_ns == asked_ns:
        return document, None
    seconds = shares.interval_ns / SECOND_NS
    return document, f"an interval is {seconds:g} s long, so that the answer stays small"


def _cores(shares: CoreShares) -> Document:
    interval_s = shares.interval_ns / SECOND_NS
    document: Document = {
        "from": format_moment(shares.from_ns),
        "from_ns": shares.from_ns,
        "interval": int(interval_s) if interval_s.is_integer() else interval_s,
        "interval_ns": shares.interval_ns,
        "cpus": shares.cpus,
    }
    for state in STATES:
        document[state] = _nullable(shares.shares[state])
    document["total"] = _nullable(shares.busy)
    return document


def _nullable(values: F64) -> list[list[float | None]]:
    rounded = np.round(values, 3)
    return [
        [
            None if value != value else (int(value) if value in (0.0, 1.0) else value)
            for value in row
        ]
        for row in rounded.tolist()
    ]


def choose_interval(length_ns: int, cores: int, asked_ns: int, *, for_json: bool) -> int:
    """The interval at which all states of all cores fit an answer, or else memory."""
    cells = CORES_CELLS if for_json else MEMORY_CELLS
    fitting = max(cells // (max(cores, 1) * (len(STATES) + 1)), 1)
    return max(asked_ns, -(-length_ns // (fitting * SECOND_NS)) * SECOND_NS)


def top_document(
    entries: Sequence[TopEntry],
    sample_s: float | None = None,
    names: Mapping[str, str] | None = None,
) -> Answer:
    """Most samples first; functions have `self` and `total` as well, processes their `comm`.

    `sample_s` is the CPU time that a sample stands for; None where that is not known.
    """
    documents: list[Document] = []
    for entry in entries:
        document: Document = {
            "name": cut(entry.name),
            "samples": entry.samples,
            "share": round(entry.share, 6),
            "cpu_s": None if sample_s is None else round(entry.samples * sample_s, 3),
        }
        if names and entry.name in names:
            document["comm"] = cut(names[entry.name])
        if entry.own is not None:
            document |= {
                "self": entry.own,
                "total": entry.samples,
                "module": cut(entry.module or ""),
            }
        documents.append(document)
    return fit_list(documents)


def events_document(events: Sequence[Event]) -> Answer:
    """In the order of time; what does not fit are the oldest."""
    documents: list[Document] = [
        {
            "time_ns": event.time_ns,
            "time": format_moment(event.time_ns),
            "kind": cut(event.kind),
            "subject": cut(event.subject),
            "message": cut(event.message, 4096),
            "cpu": event.cpu,
            "details": _cut_details(event.details),
        }
        for event in reversed(events)
    ]
    kept, said = fit_list(documents)
    return kept[::-1], said


def flame_document(rows: FlameRows, names: FlameNames) -> tuple[FlameNode, str | None]:
    """A tree `{name, value, children}`, pruned to what can be seen and then until it fits."""
    from nodescope.analysis.flame_rows import SEEN, prune, to_tree, whole

    total, seen = whole(rows), SEEN
    said: str | None = None
    while True:
        pruned = prune(rows, seen)
        shown = _cut_names(names, pruned)
        tree = to_tree(pruned, shown, total)
        _trim(tree)
        if _largest(pruned, shown) <= LARGEST or size(tree) <= LARGEST:
            return tree, said
        seen *= 1.5
        said = f"paths with less than {100 * seen:.2g} % of the samples are left out"


def _cut_names(names: FlameNames, rows: FlameRows) -> FlameNames:
    """The names that occur, none longer than any answer repeats."""
    used = ((key, names.of[key]) for key in distinct(rows.frame).tolist())
    return replace(
        names, of={key: (cut(module), cut(name), kernel) for key, (module, name, kernel) in used}
    )


def _largest(rows: FlameRows, names: FlameNames) -> int:
    """Estimate the largest size of a tree of these rows: counting is faster than writing it."""
    frames, times = count_distinct(rows.frame)
    texts: int = sum(
        count * len(json.dumps(names.of[frame][:2]))
        for frame, count in zip(frames.tolist(), times.tolist(), strict=True)
    )
    return _ROOT_BYTES + len(rows.path) * _NODE_BYTES + texts


def _trim(tree: FlameNode) -> None:
    """Without what is deeper than JSON writers and readers can go."""
    level = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node["children"]]
    for node in level:
        node["children"] = []


def _cut_details(details: Details) -> Document | None:
    """Return the details of an event, if they are of a size that a person can read."""
    document = details.to_json()
    if not document or len(json.dumps(document)) > 4096:
        return None
    return document
