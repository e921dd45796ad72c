"""Adding up the roll-ups of segments: paths and functions by id, frames by what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.archive.caller_paths import Level, to_depth_first
from nodescope.archive.function_paths import Runs
from nodescope.archive.schema import arrow_schema, combine, make_numbers, make_text, text_indices
from nodescope.arrays import I64, U64
from nodescope.records import WIDE_PATHS

if TYPE_CHECKING:
    from nodescope.archive.reader import Segment

TABLES = (*(table.name for table in WIDE_PATHS), "functions", "frames")
_MOST = np.iinfo(np.int32).max  # samples of one path

Rows = dict[str, NDArray[Any]]


def add_up(segments: Sequence[Segment]) -> dict[str, Any] | None:
    """Return the tables of all segments together; None if one lacks a roll-up or its ids."""
    if any(name not in segment.description.tables for segment in segments for name in TABLES):
        return None
    frames = _FrameSums()
    labels = {table.name: _Labels() for table in WIDE_PATHS}
    found: dict[str, list[Rows]] = {name: [] for name in TABLES}
    for segment in segments:
        row_of = frames.take(segment.read("frames"))
        for table in WIDE_PATHS:
            rows = _read_paths(segment.read(table.name), row_of, labels[table.name])
            if rows is None:
                return None
            found[table.name].append(rows)
        functions = segment.read("functions")
        if functions.column("id").null_count:
            return None
        columns = {name: _numbers(functions, name) for name in ("frame", "samples", "own", "id")}
        columns["frame"] = row_of[columns["frame"]]
        found["functions"].append(columns)
    if sum(segment.description.samples for segment in segments) > _MOST:
        return None
    made = {
        table.name: _sum_paths(table.name, _joined(found[table.name]), labels[table.name])
        for table in WIDE_PATHS
    }
    return made | {"functions": _sum_functions(_joined(found["functions"])), "frames": frames.table}


@dataclass
class _FrameSums:
    """The functions of all segments, each once."""

    number: dict[tuple[str, str, bool], int] = field(default_factory=dict)

    def take(self, table: Any) -> I64:
        """Return the new row of each row of a segment's `frames`."""
        texts = combine(table.column("module"))
        modules = [*texts.dictionary.to_pylist(), ""]
        module = [modules[code] for code in text_indices(texts).tolist()]
        columns = (module, table.column("name").to_pylist(), table.column("kernel").to_pylist())
        number = self.number
        rows = [number.setdefault(key, len(number)) for key in zip(*columns, strict=True)]
        return np.array(rows, np.int64)

    @property
    def table(self) -> Any:
        """Return them as a table."""
        modules: dict[str, int] = {}
        codes = [modules.setdefault(key[0], len(modules)) for key in self.number]
        columns = [
            make_text(np.array(codes, np.int32), list(modules)),
            pa.array([key[1] for key in self.number], pa.string()),
            pa.array([key[2] for key in self.number], pa.bool_()),
        ]
        return pa.Table.from_arrays(columns, schema=arrow_schema("frames"))


@dataclass
class _Labels:
    """The texts at roots; those of one table have the same numbers in all segments."""

    number: dict[str, int] = field(default_factory=dict)

    def take(self, column: Any) -> I64:
        """Return a text column as numbers, -1 where it is null."""
        texts = combine(column)
        number = self.number
        values = texts.dictionary.to_pylist()
        of = [number.setdefault(value, len(number)) for value in values]
        return np.array([*of, -1], np.int64)[text_indices(texts)]


def _read_paths(table: Any, row_of: I64, labels: _Labels) -> Rows | None:
    if table.column("id").null_count:
        return None
    ids, depth = _numbers(table, "id"), table.column("depth").to_numpy()
    parent = Runs(depth).parent
    frame = _numbers(table, "frame")
    names = table.column_names
    label = next((name for name in ("comm", "cgroup") if name in names), None)
    return {
        "id": ids,
        "caller": np.where(parent >= 0, ids[parent], 0),
        "depth": depth,
        "frame": np.where(depth > 0, row_of[frame], -1),
        "samples": _numbers(table, "samples"),
        "root": _numbers(table, "cpu") if label is None else labels.take(table.column(label)),
        "kernel": _numbers(table, "kernel") if "kernel" in names else np.zeros(len(ids), np.int64),
    }


def _sum_paths(name: str, rows: Rows, labels: _Labels) -> Any:
    """Return the paths of all segments, those of one id and mode as one, depth-first."""
    kernels = (0, 1) if name == "mode_paths" else (0,)
    parts = []
    for kernel in kernels:
        chosen = np.flatnonzero(rows["kernel"] == kernel)
        parts.append(_sum_mode(name, {key: each[chosen] for key, each in rows.items()}, labels))
    return pa.concat_tables(parts)


def _sum_mode(name: str, rows: Rows, labels: _Labels) -> Any:
    ids, first, inverse = np.unique(
        rows["id"].view(np.uint64), return_index=True, return_inverse=True
    )
    samples = np.bincount(inverse, rows["samples"], len(ids)).astype(np.int64)
    summed = {key: each[first] for key, each in rows.items()}
    row = _depth_first(ids, summed)
    columns = {key: each[row] for key, each in summed.items()} | {"samples": samples[row]}
    arrays = []
    for column in arrow_schema(name):
        if column.name in ("comm", "cgroup"):
            arrays.append(make_text(columns["root"].astype(np.int32), list(labels.number)))
        else:
            values = columns["root" if column.name == "cpu" else column.name]
            arrays.append(make_numbers(values.astype(column.type.to_pandas_dtype())))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(name))


def _depth_first(ids: U64, rows: Rows) -> I64:
    """Return the order of distinct paths in which each stands behind its callers' path."""
    levels: list[Level] = []
    above = np.flatnonzero(rows["depth"] == 0)
    above = above[np.argsort(rows["root"][above], kind="stable")]
    levels.append(Level(np.arange(len(above)), above, np.zeros(len(above), np.int64)))
    caller_row = np.searchsorted(ids, rows["caller"].view(np.uint64))
    place = np.zeros(len(ids) + 1, np.int64)
    for depth in range(1, int(rows["depth"].max(initial=0)) + 1):
        place[above] = np.arange(len(above))
        here = np.flatnonzero(rows["depth"] == depth)
        caller = place[caller_row[here]]
        order = np.argsort(caller, kind="stable")
        above = here[order]
        levels.append(Level(caller[order], above, np.zeros(len(above), np.int64)))
    return to_depth_first(levels).frame


def _sum_functions(rows: Rows) -> Any:
    ids, first, inverse = np.unique(rows["id"], return_index=True, return_inverse=True)
    columns = {"frame": rows["frame"][first], "id": ids}
    for name in ("samples", "own"):
        columns[name] = np.bincount(inverse, rows[name], len(ids)).astype(np.int64)
    order = np.argsort(columns["frame"], kind="stable")
    arrays = [
        make_numbers(columns[column.name][order].astype(column.type.to_pandas_dtype()))
        for column in arrow_schema("functions")
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema("functions"))


def _joined(parts: Sequence[Rows]) -> Rows:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _numbers(table: Any, name: str) -> I64:
    numbers: I64 = table.column(name).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
