"""From the tables of an open segment to those of a sealed one, in memory.

What sealing does: frames sorted and stacks laid out depth-first, what nobody
refers to dropped, equal rows of `profile` merged and counted, samples sorted
by core and time, samples rolled up by second and core. All references are
renumbered with it. A segment with many samples also gets its wide paths
(`wide_paths`), so that a flame graph of hours need not read all stacks of each segment.
No file is touched here: an open segment that is only read is presented through the same
function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.archive.feature_tables import roll_up_features
from nodescope.archive.gaps import merge_rows
from nodescope.archive.layout import MAX_TIME_NS
from nodescope.archive.schema import (
    arrow_schema,
    combine,
    empty_table,
    make_numbers,
    make_text,
    take_rows,
    text_indices,
)
from nodescope.archive.stack_layout import DepthFirst, StackList, is_tree, lay_out, read_stacks
from nodescope.archive.wide_paths import CountedSegment
from nodescope.numbering import distinct
from nodescope.quantities import SECOND_NS
from nodescope.records import NODE_TABLES, SEALED_TABLES, TABLES
from nodescope.records.tables import FOLDED

Array = NDArray[Any]


def derive_sealed(opened: dict[str, Any], tick_ns: int) -> dict[str, Any]:
    """The tables of the sealed segment.

    Takes the tables out of `opened` as it goes, so that the large ones are not held twice.
    """
    plain = ("cores", "heartbeats", "gaps", "events", *(table.name for table in NODE_TABLES))
    sealed = {name: _sort(name, opened.pop(name)) for name in plain}
    sealed["gaps"] = merge_rows(sealed["gaps"])
    samples = _take_samples(opened)
    frames, stacks, profile = (opened.pop(name) for name in ("frames", "stacks", "profile"))
    depth, frame = _column(stacks, "depth"), _column(stacks, "frame")
    del stacks
    # Without the samples that refer to rows which a crash cost.
    intact = _lookup(_find_intact(depth, frame, len(frames)), _column(profile, "stack"))
    kept = _lookup(intact, samples["profile"]) & _possible(samples["tick"], tick_ns)
    samples = _keep(samples, kept)

    used = _distinct_rows(samples["profile"], len(profile))
    leaves = distinct(_column(profile, "stack")[used])
    listed = read_stacks(depth, frame, leaves.astype(np.int64))
    del depth, frame
    called = _distinct_rows(listed.frames, len(frames))
    sealed["frames"], row_of_frame = _sort_frames(frames, called)
    tree = lay_out(StackList(row_of_frame[listed.frames], listed.lengths))
    folded = _find_folded(frames, listed)
    del listed
    sealed["stacks"] = _make("stacks", [tree.depth, tree.frame])
    place = np.searchsorted(leaves, _column(profile, "stack")[used])
    stack, is_folded = tree.row_of[place], np.zeros(len(profile), np.bool_)
    is_folded[used] = folded[place]
    is_folded = is_folded[samples["profile"]]
    sealed["profile"], row_of_profile = _merge_profile(profile, used, stack, samples["profile"])
    samples["profile"] = row_of_profile[samples["profile"]]
    _roll_up_paths(sealed, tree, samples, opened["cgroups"], tick_ns)
    del tree
    kernel = _column(sealed["profile"], "kernel")[samples["profile"]]
    sealed["seconds"] = _roll_up_seconds(samples, kernel, is_folded, tick_ns)
    cgroup = make_text(samples["cgroup"], opened.pop("cgroups"))
    columns = {**samples, "cgroup": cgroup}
    sealed["samples"] = _make("samples", [columns[each.name] for each in TABLES["samples"].columns])
    sealed["threads"] = empty_table("threads")  # made where samples are stored by thread
    return {name: sealed[name] for name in SEALED_TABLES}


def _make(name: str, columns: list[Any]) -> Any:
    arrays = [make_numbers(each) if isinstance(each, np.ndarray) else each for each in columns]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(name))


def _column(table: Any, name: str) -> Array:
    # Chunk by chunk: Arrow's own conversion goes through a second copy of the column.
    chunks = [chunk.to_numpy(zero_copy_only=False) for chunk in table.column(name).chunks]
    return np.concatenate(chunks) if chunks else table.column(name).to_numpy()


def _sort(name: str, table: Any) -> Any:
    """The rows in their declared order, without those whose times cannot be."""
    if not len(table):
        return table
    order = np.lexsort([_sort_key(table, key) for key in reversed(TABLES[name].order)])
    for column in table.column_names:
        if column in ("time_ns", "wall_ns", "from_ns", "to_ns"):
            order = order[_possible(_column(table, column)[order], 1)]
    whole = len(order) == len(table) and (order[1:] > order[:-1]).all()
    return table if whole else take_rows(table, order)


def _sort_key(table: Any, name: str) -> Array:
    """A column as numbers in its order; texts by their rank in the alphabet."""
    if not pa.types.is_dictionary(table.schema.field(name).type):
        return _column(table, name)
    texts = combine(table.column(name))
    values = texts.dictionary.to_pylist()
    rank = np.empty(len(values) + 1, np.int32)
    rank[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    rank[-1] = -1  # null
    return rank[text_indices(texts)]


def _possible(times: Array, unit_ns: int) -> NDArray[np.bool_]:
    """Which times lie on a clock at all: a torn page of the last flush may hold anything."""
    return (times >= 0) & (times <= MAX_TIME_NS // unit_ns)


def _take_samples(opened: dict[str, Any]) -> dict[str, Array]:
    """The samples as arrays, sorted by core and time; `cgroup` as row numbers.

    They are most of a segment, so no more than one column is held twice.
    """
    table = opened.pop("samples")
    cgroup = combine(table.column("cgroup"))
    samples = {name: _column(table, name) for name in ("cpu", "tick", "pid", "thread", "profile")}
    samples["cgroup"] = text_indices(cgroup)
    opened["cgroups"] = cgroup.dictionary.to_pylist()  # a slice would keep the whole stream
    del table, cgroup
    order = np.lexsort((samples["tick"], samples["cpu"])).astype(np.int32)
    for name in samples:
        samples[name] = samples[name][order]
    return samples


def _keep(samples: dict[str, Array], kept: NDArray[np.bool_]) -> dict[str, Array]:
    if kept.all():
        return samples
    return {name: values[kept] for name, values in samples.items()}


def _lookup(flags: NDArray[np.bool_], rows: Array) -> NDArray[np.bool_]:
    inside = (rows >= 0) & (rows < len(flags))
    inside[inside] = flags[rows[inside]]
    return inside


def _distinct_rows(rows: Array, count: int) -> Array:
    """The distinct row numbers of a table with `count` rows, in order."""
    found = np.zeros(count, np.bool_)
    found[rows] = True
    return np.flatnonzero(found)


def _find_intact(depth: Array, frame: Array, frames: int) -> NDArray[np.bool_]:
    """Which rows of an open `stacks` are a stack, as far as a torn page leaves them one."""
    broken = ~is_tree(depth) | (frame < 0) | (frame >= frames)
    if not broken.any():
        return ~broken
    depth[broken] = 0
    before = np.cumsum(broken)
    outermost = np.maximum.accumulate(np.where(depth == 0, np.arange(len(depth)), 0))
    intact: NDArray[np.bool_] = ~broken & ~broken[outermost] & (before == before[outermost])
    return intact


def _sort_frames(frames: Any, rows: Array) -> tuple[Any, Array]:
    """The given rows of `frames`, sorted; and the new row of each old one."""
    texts = combine(frames.column("module"))
    module_names = texts.dictionary.to_pylist()  # one string for all frames of a module
    modules = text_indices(texts)[rows].tolist()
    kernel, names = _column(frames, "kernel")[rows].tolist(), frames.column("name").to_pylist()
    keys = [
        (in_kernel, module_names[module], names[row])
        for in_kernel, module, row in zip(kernel, modules, rows.tolist(), strict=True)
    ]
    del names
    # Two rows may say the same; then they become one.
    ordered = sorted(set(keys))
    rank = {key: row for row, key in enumerate(ordered)}
    row_of = np.full(len(frames), -1, np.int32)
    row_of[rows] = np.fromiter((rank[key] for key in keys), np.int32, len(keys))
    row_of_module: dict[str, int] = {}
    numbers = [row_of_module.setdefault(key[1], len(row_of_module)) for key in ordered]
    columns = [
        make_text(np.array(numbers, np.int32), list(row_of_module)),
        pa.array([key[2] for key in ordered], pa.string()),
        pa.array([key[0] for key in ordered], pa.bool_()),
    ]
    return _make("frames", columns), row_of


def _merge_profile(profile: Any, used: Array, stack: Array, referred: Array) -> tuple[Any, Array]:
    """The used rows, given their stacks; equal ones as one, most samples first."""
    comm, names = _encode_by_frequency(combine(profile.column("comm")), used)
    kernel = _column(profile, "kernel")[used]
    key = (stack.astype(np.int64) << 32 | comm.astype(np.int64) << 1) | kernel
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
        make_text((merged & 0xFFFFFFFF) >> 1, names),
        (merged & 1).astype(np.bool_),
        samples[order].astype(np.int32),
        pa.nulls(len(order), pa.int32()),
    ]
    return _make("profile", columns), position


def _roll_up_paths(
    sealed: dict[str, Any],
    tree: DepthFirst,
    samples: dict[str, Array],
    cgroups: list[str],
    tick_ns: int,
) -> None:
    """Add wide paths, functions and features, and the trunk of a large tree, to the tables."""
    profile = sealed["profile"]
    counted = CountedSegment(
        tree.depth,
        tree.frame,
        sealed["frames"],
        _column(profile, "stack").astype(np.int64),
        combine(profile.column("comm")),
        _column(profile, "kernel"),
        _column(profile, "samples").astype(np.int64),
        samples["profile"],
        samples["cpu"],
        _seconds_of(samples["tick"], tick_ns),
        samples["cgroup"],
        cgroups,
    )
    sealed.update(counted.roll_up())
    sealed.update(roll_up_features(counted))
    trunk = counted.trunk
    if trunk is None:
        sealed["trunk"] = empty_table("trunk")
        return
    sealed["trunk"] = _make("trunk", [trunk.depth, trunk.frame])
    place = profile.schema.get_field_index("trunk")
    column = make_numbers(trunk.row_of.astype(np.int32))
    sealed["profile"] = profile.set_column(place, profile.schema.field(place), column)


def _encode_by_frequency(texts: Any, rows: Array) -> tuple[Array, Any]:
    """Rows of a text column as row numbers of its distinct values, the most frequent first.

    Small numbers for frequent values make `profile.comm` a tenth smaller.
    """
    values = texts.dictionary.to_pylist()
    indices = text_indices(texts)[rows]
    uses: dict[str, int] = {}
    for value, count in zip(values, np.bincount(indices, minlength=len(values)), strict=True):
        if count:
            uses[value] = uses.get(value, 0) + int(count)
    ordered = sorted(uses, key=lambda value: (-uses[value], value))
    rank = {value: row for row, value in enumerate(ordered)}
    new_index = np.array([rank.get(value, -1) for value in values], np.int32)
    return new_index[indices], pa.array(ordered, pa.string())


def _find_folded(frames: Any, stacks: StackList) -> NDArray[np.bool_]:
    """Find the stacks that lack their middle."""
    texts = combine(frames.column("module"))
    if FOLDED not in texts.dictionary.to_pylist():
        return np.zeros(len(stacks.lengths), np.bool_)
    row = texts.dictionary.to_pylist().index(FOLDED)
    marks = np.isin(stacks.frames, np.flatnonzero(text_indices(texts) == row))
    found: NDArray[np.bool_] = np.logical_or.reduceat(marks, stacks.starts)
    return found


def _roll_up_seconds(samples: dict[str, Array], kernel: Array, folded: Array, tick_ns: int) -> Any:
    """Samples by core and second; the samples must be sorted by core and time."""
    cpu = samples["cpu"]
    if not len(cpu):
        return empty_table("seconds")
    second = _seconds_of(samples["tick"], tick_ns)
    starts = np.flatnonzero(np.r_[True, (cpu[1:] != cpu[:-1]) | (second[1:] != second[:-1])])
    in_kernel = np.add.reduceat(kernel, starts, dtype=np.int32)
    total = np.diff(np.r_[starts, len(cpu)])
    columns = [
        cpu[starts],
        second[starts].astype(np.int64),
        (total - in_kernel).astype(np.int32),
        in_kernel,
        np.add.reduceat(folded, starts, dtype=np.int32),
    ]
    return _make("seconds", columns)


def _seconds_of(tick: Array, tick_ns: int) -> NDArray[np.int32]:
    """Return the second of each tick."""
    second = tick * tick_ns
    second //= SECOND_NS
    return second.astype(np.int32)
