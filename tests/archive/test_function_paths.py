"""The compressed trie, against the slow truth; and the roll-up that sealing makes with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.conftest import LATER, SAMPLES, write_archive
from tests.analysis.test_call_tree import callers, trees

from nodescope.analysis.call_tree import CallTree
from nodescope.analysis.filter import Filter, count_values, number_values
from nodescope.analysis.flame import Group, flame_rows
from nodescope.analysis.flame_node import FlameNode
from nodescope.analysis.flame_rows import FlameNames, merge, prune, to_tree, whole
from nodescope.archive import wide_paths
from nodescope.archive.function_paths import (
    Leaves,
    count_keys,
    find_wide_callers,
    least_between,
    next_smaller,
)
from nodescope.recording import sample_columns
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records.tables import NARROW


@given(st.lists(st.lists(st.integers(0, 9), max_size=20), max_size=5))
def test_keys_in_parts_are_counted_as_one(parts: list[list[int]]) -> None:
    found = count_keys((np.array(part, np.int64) for part in parts), 10)
    assert found.tolist() == [sum(part.count(key) for part in parts) for key in range(10)]


@given(st.lists(st.integers(0, 9), max_size=60))
def test_the_next_smaller(values: list[int]) -> None:
    found = next_smaller(np.array(values, np.int16))
    for at, value in enumerate(values):
        later = [i for i in range(at + 1, len(values)) if values[i] < value]
        assert found[at] == (later[0] if later else len(values))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=50), st.data())
def test_the_least_between(values: list[int], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values) - 1))
    end = data.draw(st.integers(start + 1, len(values)))
    found = least_between(np.array(values, np.int16), np.array([start]), np.array([end]))
    assert found.tolist() == [min(values[start:end])]


@given(trees(), st.data())
def test_pieces_are_every_function_of_every_leaf(tree: CallTree, data: st.DataObject) -> None:
    leaves_of = st.tuples(st.integers(0, max(len(tree) - 1, 0)), st.integers(0, 3))
    chosen = data.draw(st.lists(leaves_of, max_size=30)) if len(tree) else []
    row, group = (np.array([each[i] for each in chosen], np.int64) for i in range(2))
    leaves = Leaves.of(tree.depth.astype(np.int16), row, group)
    pieces = leaves.pieces().in_order()
    assert len(pieces.leaf) <= max(0, 2 * len(chosen) - 1)
    found: Counter[tuple[int, int, int]] = Counter()  # group, leaf, function's row
    for piece, at, depth in zip(*(each.tolist() for each in pieces.functions(leaves)), strict=True):
        assert tree.depth[at] == depth
        for leaf in range(int(pieces.leaf[piece]), int(pieces.end[piece])):
            found[int(leaves.group[leaf]), int(leaves.row[leaf]), at] += 1
    slow = Counter((in_group, leaf, at) for leaf, in_group in chosen for at in callers(tree, leaf))
    assert found == slow


@given(trees(), st.data(), st.integers(1, 9))
def test_wide_callers_are_the_innermost_wide_ones(
    tree: CallTree, data: st.DataObject, fewest: int
) -> None:
    leaves_of = st.tuples(st.integers(0, max(len(tree) - 1, 0)), st.integers(1, 5))
    chosen = data.draw(st.lists(leaves_of, max_size=30)) if len(tree) else []
    row, count = (np.array([each[i] for each in chosen], np.int64) for i in range(2))
    found = find_wide_callers(tree.depth.astype(np.int16), row, count, fewest)
    totals: Counter[int] = Counter()
    for leaf, samples in chosen:
        totals.update(dict.fromkeys(callers(tree, leaf), samples))
    for (leaf, _), at in zip(chosen, found.tolist(), strict=True):
        wide = [each for each in callers(tree, leaf) if totals[each] >= fewest]
        assert at == (wide[0] if wide else -1)


@given(st.lists(st.one_of(st.integers(-1, 40), st.integers(0, 1 << 40)), max_size=40))
def test_values_are_counted_near_and_far(values: list[int]) -> None:
    counted = Counter(values)
    found, counts = count_values(np.array(values, np.int64))
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == counted
    distinct, number = number_values(np.array(values, np.int64))
    assert distinct.tolist() == sorted(counted)
    assert [distinct[each] for each in number.tolist()] == values


# -- the roll-up -----------------------------------------------------------------


@pytest.fixture
def rolled_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SampleColumns]:
    """The hand-made archive, as if its few samples were many."""
    monkeypatch.setattr(wide_paths, "MANY", 1)
    archive = write_archive(tmp_path / "archive", [SAMPLES * 40, LATER * 40])
    return [SampleColumns(segment) for segment in archive.segments()]


def test_only_segments_with_many_samples_have_it(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "archive", [SAMPLES])
    assert "paths" not in archive.segments()[0].description.tables


def test_it_answers_as_the_stacks_do(
    rolled_up: list[SampleColumns], monkeypatch: pytest.MonkeyPatch
) -> None:
    def flame() -> object:
        names = FlameNames()
        rows = merge(flame_rows(part, Filter(), names, least=NARROW) for part in rolled_up)
        assert whole(rows) == 40 * len(SAMPLES + LATER)
        tree = to_tree(rows, names, whole(rows))
        return _in_order(tree)

    assert all("paths" in part.segment.description.tables for part in rolled_up)
    quick = flame()
    assert all("_stacks" not in vars(part) for part in rolled_up)  # they were not read
    monkeypatch.setattr("nodescope.analysis.flame._may_serve", lambda *_: False)
    assert flame() == quick
    assert all("_stacks" in vars(part) for part in rolled_up)


@pytest.mark.parametrize("chosen", [Filter(comms=("app",)), Filter(cpus=frozenset({0}))])
def test_it_does_not_answer_for_a_filter(rolled_up: list[SampleColumns], chosen: Filter) -> None:
    names = FlameNames()
    rows = flame_rows(rolled_up[0], chosen, names, least=NARROW)
    assert 0 < whole(rows) < 40 * len(SAMPLES)


@pytest.mark.parametrize("group", ["cpu", "pid", "cgroup"])
def test_folding_narrow_stacks_changes_no_wide_path(
    rolled_up: list[SampleColumns], group: Group
) -> None:
    for least in (0.01, 0.2, 0.4):
        graphs = []
        for fold in (least, 0.0):
            names = FlameNames()
            rows = flame_rows(rolled_up[0], Filter(), names, group=group, least=fold)
            graphs.append(_in_order(to_tree(prune(rows, least), names, whole(rows))))
        assert graphs[0] == graphs[1]


def test_groups_left_out_count(rolled_up: list[SampleColumns]) -> None:
    rows = flame_rows(rolled_up[0], Filter(), FlameNames(), group="pid", least=0.3)
    assert rows.rest > 0
    assert whole(rows) == 40 * len(SAMPLES)
    assert whole(prune(rows, 0.9)) == 40 * len(SAMPLES)


def _in_order(node: FlameNode) -> object:
    below = sorted((_in_order(child) for child in node["children"]), key=repr)
    return (node["name"], node["value"], node.get("module"), tuple(below))


@pytest.mark.parametrize("depth", [[1], [0, 2], [0, -1], [0, 32767]])
def test_what_is_no_tree(depth: list[int]) -> None:
    assert not sample_columns._is_tree(np.array(depth, np.int16))
    assert sample_columns._is_tree(np.array([0, 1, 2, 1, 0], np.int16))
