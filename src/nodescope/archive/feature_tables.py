"""The roll-ups by function and by feature of a segment with many samples.

Listing functions, and comparing seconds with the half hour before them, then needs neither
the samples nor the stacks of that half hour. A comparison names what it shows by the row of
`frames` and the process name that a feature refers to, and adds up segments by its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nodescope.archive.feature_counts import (
    CountedSamples,
    Features,
    Functions,
    StackTree,
    count_by_frame,
    count_features,
    graft_leaves,
)
from nodescope.archive.schema import arrow_schema, empty_table, make_numbers, make_text
from nodescope.archive.schema import text_indices as indices_of
from nodescope.archive.stack_ids import identify_texts
from nodescope.archive.wide_paths import CountedSegment
from nodescope.arrays import I64, U64, Bool
from nodescope.records.tables import NARROW

COUNTED = 1 / 1000  # of a segment's samples: features with fewer are not counted by second
MOST_SECONDS = 1800  # a segment is two minutes; one of hours has no roll-up by second
_TABLES = ("functions", "features", "feature_seconds")


def roll_up_features(counted: CountedSegment) -> dict[str, Any]:
    """Make the tables of functions and features; without rows where samples are few."""
    made = {name: empty_table(name) for name in _TABLES}
    if not counted.is_rolled_up:
        return made
    total, own = count_by_frame(
        counted.depth, counted.frame, counted.stack, counted.count, len(counted.frames)
    )
    frame = np.flatnonzero(total).astype(np.int32)
    ids = counted.frame_ids[frame].view(np.int64)
    made["functions"] = _make("functions", [frame, total[frame], own[frame], ids])
    if int(counted.second.max()) - int(counted.second.min()) >= MOST_SECONDS:
        return made
    made["features"], made["feature_seconds"] = _features(counted)
    return made


def _features(counted: CountedSegment) -> tuple[Any, Any]:
    least, first = len(counted.profile) * COUNTED, int(counted.second.min())
    comms: list[str] = counted.comm.dictionary.to_pylist()
    functions = Functions.of_frames(*counted.frame_columns)
    samples = CountedSamples(
        counted.profile,
        counted.cpu,
        counted.second - np.int32(first),
        int(counted.second.max()) - first + 1,
        indices_of(counted.comm).astype(np.int64),
        len(comms),
    )

    def choose(ids: U64, total: I64) -> Bool:
        del ids
        chosen: Bool = total >= least
        return chosen

    found = count_features(samples, _tree(counted), functions, identify_texts(comms), choose)
    return _tables(found, functions, comms, len(counted.profile), first)


def _tree(counted: CountedSegment) -> StackTree:
    """Return the tree whose functions count: that of all stacks, if it is not too large."""
    if counted.trunk is None:
        return StackTree(counted.depth, counted.frame, counted.stack)
    wide = counted.wide
    return graft_leaves(wide.depth, wide.frame, wide.row_of, counted.frame[counted.stack])


def _tables(
    found: Sequence[Features], functions: Functions, comms: list[str], samples: int, first: int
) -> tuple[Any, Any]:
    """Lay out the features that are not narrow, and the seconds of the larger ones."""
    # A function is named by any row of `frames` that it has: the first.
    frame_of = np.full(len(functions.names), -1, np.int64)
    frame_of[functions.of[::-1]] = np.arange(len(functions.of))[::-1]
    rows, seconds, before = [], [], 0
    for each in found:
        kept = np.flatnonzero(each.total >= max(1, int(samples * NARROW)))
        key, none = each.key[kept], np.full(len(kept), -1, np.int64)
        many = {"function": len(functions.names), "core": len(comms)}.get(each.kind, 1)
        comm = {"comm": key, "function": key // many, "kernel": none, "core": key % many}[each.kind]
        frame = frame_of[key % many] if each.kind == "function" else none
        frame = frame_of[key] if each.kind == "kernel" else frame
        cpu = key // many if each.kind == "core" else none
        depth = np.rint(each.depth[kept].astype(np.float64) * each.total[kept]).astype(np.int64)
        rows.append((comm, frame, cpu, each.total[kept], depth, each.id[kept].view(np.int64)))
        row_of = np.searchsorted(kept, each.chosen) + before
        place, second = np.nonzero(each.counts)
        seconds.append((row_of[place], second + first, each.counts[place, second]))
        before += len(kept)
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    features = _make("features", [make_text(columns[0], comms), *columns[1:]])
    cells = [np.concatenate(column) for column in zip(*seconds, strict=True)]
    return features, _make("feature_seconds", cells)


def _make(name: str, columns: list[Any]) -> Any:
    schema = arrow_schema(name)
    arrays = [
        make_numbers(column.astype(field.type.to_pandas_dtype()))
        if isinstance(column, np.ndarray)
        else column
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
