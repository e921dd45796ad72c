"""From the tables of an open segment to those of a sealed one, in memory.

What sealing does: frames sorted and stacks laid out depth-first, what nobody
refers to dropped, equal rows of `profile` merged and counted, samples sorted
by core and time, samples rolled up by second and core. All references are
renumbered with it. No file is touched here: an open segment that is only read
is presented through the same function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.archive.schema import arrow_schema, empty_table
from nodescope.archive.tree import find_intact, lay_out, mark_callers
from nodescope.records import SEALED_TABLES, TABLES

Array = NDArray[Any]
SECOND_NS = 1_000_000_000


def derive_sealed(opened: dict[str, Any], tick_ns: int) -> dict[str, Any]:
    """The tables of the sealed segment.

    Takes the tables out of `opened` as it goes, so that the large ones are not held twice.
    """
    sealed = {
        name: _sort(name, opened.pop(name)) for name in ("cores", "heartbeats", "gaps", "events")
    }
    samples = _take_samples(opened.pop("samples"))
    frames, calls, profile = (opened.pop(name) for name in ("frames", "calls", "profile"))
    parent, frame = _column(calls, "parent"), _column(calls, "frame")
    intact = find_intact(parent, frame, len(frames))
    samples = _keep_intact(samples, _lookup(intact, _column(profile, "stack")))

    in_use = np.zeros(len(calls), np.bool_)
    in_use[_column(profile, "stack")[np.unique(samples["profile"])]] = True
    in_use = mark_callers(parent, in_use)
    sealed["frames"], row_of_frame = _sort_frames(frames, np.unique(frame[in_use]))
    tree = lay_out(parent, frame, in_use, row_of_frame)
    sealed["stacks"] = _make("stacks", [tree.depth, tree.frame])
    sealed["profile"], row_of_profile = _merge_profile(profile, tree.row_of, samples["profile"])
    samples["profile"] = row_of_profile[samples["profile"]]
    kernel = _column(sealed["profile"], "kernel")[samples["profile"]]
    sealed["seconds"] = _roll_up_seconds(samples["cpu"], samples["tick"], kernel, tick_ns)
    sealed["samples"] = _make(
        "samples", [samples.pop(column.name) for column in TABLES["samples"].columns]
    )
    return {name: sealed[name] for name in SEALED_TABLES}


def _make(name: str, columns: list[Any]) -> Any:
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=arrow_schema(name))


def _column(table: Any, name: str) -> Array:
    column: Array = table.column(name).to_numpy()
    return column


def _sort(name: str, table: Any) -> Any:
    keys = [_column(table, key) for key in reversed(TABLES[name].order)]
    order = np.lexsort(keys)
    return table if (order[1:] > order[:-1]).all() else table.take(pa.array(order))


def _take_samples(table: Any) -> dict[str, Any]:
    """The samples as arrays of their own, sorted by core and time."""
    cpu, tick = _column(table, "cpu"), _column(table, "tick")
    order = np.lexsort((tick, cpu))
    taken: dict[str, Any] = {"cpu": cpu[order], "tick": tick[order]}
    for name in ("pid", "thread", "profile"):
        taken[name] = _column(table, name)[order]
    cgroup = table.column("cgroup").combine_chunks()
    if isinstance(cgroup, pa.ChunkedArray):  # older Arrow gives one chunk in a shell
        cgroup = cgroup.chunk(0) if cgroup.num_chunks else empty_table("samples")["cgroup"]
    taken["cgroup"] = cgroup.take(pa.array(order))
    return taken


def _keep_intact(samples: dict[str, Any], intact: NDArray[np.bool_]) -> dict[str, Any]:
    """Without the samples that refer to rows which a crash cost."""
    kept = _lookup(intact, samples["profile"])
    if kept.all():
        return samples
    mask = pa.array(kept)
    return {
        name: values.filter(mask) if name == "cgroup" else values[kept]
        for name, values in samples.items()
    }


def _lookup(flags: NDArray[np.bool_], rows: Array) -> NDArray[np.bool_]:
    inside = (rows >= 0) & (rows < len(flags))
    inside[inside] = flags[rows[inside]]
    return inside


def _sort_frames(frames: Any, rows: Array) -> tuple[Any, Array]:
    """The given rows of `frames`, sorted; and the new row of each old one."""
    chosen = frames.take(pa.array(rows))
    keys = list(
        zip(
            chosen.column("kernel").to_pylist(),
            chosen.column("module").to_pylist(),
            chosen.column("name").to_pylist(),
            strict=True,
        )
    )
    # Two rows may say the same; then they become one.
    ordered = sorted(set(keys))
    rank = {key: row for row, key in enumerate(ordered)}
    row_of = np.full(len(frames), -1, np.int32)
    row_of[rows] = np.fromiter((rank[key] for key in keys), np.int32, len(keys))
    module = pa.array([key[1] for key in ordered], pa.string())
    columns = [
        module.dictionary_encode().cast(arrow_schema("frames").field("module").type),
        pa.array([key[2] for key in ordered], pa.string()),
        pa.array([key[0] for key in ordered], pa.bool_()),
    ]
    return _make("frames", columns), row_of


def _merge_profile(profile: Any, row_of_stack: Array, referred: Array) -> tuple[Any, Array]:
    """Rows with equal stack, comm and mode as one, most samples first."""
    used = np.unique(referred)
    comm, names = _encode_sorted(profile.column("comm").combine_chunks().take(pa.array(used)))
    stack = row_of_stack[_column(profile, "stack")[used]].astype(np.int64)
    kernel = _column(profile, "kernel")[used]
    key = (stack << 32 | comm.astype(np.int64) << 1) | kernel
    unique, row_of_used = np.unique(key, return_inverse=True)
    position = np.full(len(profile), -1, np.int32)
    position[used] = row_of_used
    samples = np.bincount(position[referred], minlength=len(unique))
    # By descending power of two only: frequent rows get small numbers, which
    # compresses the references, and inside a power of two stacks stay sorted.
    order = np.argsort(-np.frexp(samples)[1], kind="stable")
    new_row = np.empty(len(order), np.int32)
    new_row[order] = np.arange(len(order), dtype=np.int32)
    position[used] = new_row[row_of_used]
    merged = unique[order]
    columns = [
        (merged >> 32).astype(np.int32),
        pa.DictionaryArray.from_arrays(
            pa.array(((merged & 0xFFFFFFFF) >> 1).astype(np.int32)), names
        ),
        (merged & 1).astype(np.bool_),
        samples[order].astype(np.int32),
    ]
    return _make("profile", columns), position


def _encode_sorted(texts: Any) -> tuple[Array, Any]:
    """A text column as row numbers of its sorted, distinct values."""
    values = texts.dictionary.to_pylist()
    indices = texts.indices.to_numpy()
    present = np.unique(indices)
    ordered = sorted({values[index] for index in present})
    rank = {value: row for row, value in enumerate(ordered)}
    new_index = np.zeros(len(values), np.int32)
    new_index[present] = [rank[values[index]] for index in present]
    return new_index[indices], pa.array(ordered, pa.string())


def _roll_up_seconds(cpu: Array, tick: Array, kernel: Array, tick_ns: int) -> Any:
    """Samples by core and second; the samples must be sorted by core and time."""
    if not len(cpu):
        return empty_table("seconds")
    second = tick * tick_ns // SECOND_NS
    starts = np.flatnonzero(np.r_[True, (cpu[1:] != cpu[:-1]) | (second[1:] != second[:-1])])
    in_kernel = np.add.reduceat(kernel.astype(np.int32), starts)
    total = np.diff(np.r_[starts, len(cpu)])
    columns = [
        cpu[starts],
        second[starts],
        (total - in_kernel).astype(np.int32),
        in_kernel.astype(np.int32),
    ]
    return _make("seconds", columns)
