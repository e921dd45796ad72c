"""Roll-ups by function and by feature, against plain counting and against the samples."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.conftest import START, Sample, write_archive
from tests.archive.test_wide_paths import make_samples

from nodescope.analysis.compare import compare
from nodescope.analysis.features import Block, Windows, count_part, has_roll_up, read_part
from nodescope.analysis.filter import Filter
from nodescope.analysis.top import rank
from nodescope.archive import feature_counts, wide_paths
from nodescope.archive.feature_counts import graft_leaves
from nodescope.archive.reader import Archive, Segment
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns

MANY = 26_000  # enough for a large tree to be rolled up
NOTHING = np.empty(0, np.uint64)
Named = dict[tuple[str, str], int]


def seal(path: Path, samples: list[Sample], *, large: bool = False, rolled: bool = True) -> Segment:
    """One segment, sealed as if its samples were many, or its tree large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_paths, "MANY", 1 if rolled else 1 << 40)
        patch.setattr(wide_paths, "LARGE_TREE", 1 if large else 1 << 40)
        patch.setattr(wide_paths, "TRUNK_SAMPLES", 3)
        (segment,) = write_archive(path, [samples]).segments()
    return segment


def count_plainly(samples: list[Sample]) -> Named:
    """Samples by feature."""
    counted: Counter[tuple[str, str]] = Counter()
    for sample in samples:
        names = [name.removesuffix("_[k]") for name in sample.names]
        kernel = {
            name.removesuffix("_[k]")
            for name in sample.stack.split(";")
            if name.endswith("_[k]")
        }  # fmt: skip
        counted["comm", sample.comm] += 1
        counted["core", f"cpu {sample.cpu};{sample.comm}"] += 1
        counted.update({("function", f"{sample.comm};{name}") for name in names})
        counted.update({("kernel", name) for name in kernel})
    return counted


def name_all(block: Block) -> Named:
    """The features of a block by name."""
    named: Named = {}
    for key, total in zip(block.feature.tolist(), block.total.tolist(), strict=True):
        described = block.describe(key)
        assert described is not None
        named[described[0].kind, described[0].name.replace("_[k]", "")] = total
    return named


@pytest.mark.parametrize("large", [False, True])
def test_functions_are_counted_as_from_the_stacks(tmp_path: Path, large: bool) -> None:
    samples = make_samples(MANY, 3)
    rolled = SampleColumns(seal(tmp_path / "rolled", samples, large=large))
    plain = SampleColumns(seal(tmp_path / "plain", samples, rolled=False))
    assert "functions" in rolled.segment.description.tables
    assert "functions" not in plain.segment.description.tables
    found = rank([rolled], Filter(), "function")
    assert found == rank([plain], Filter(), "function")
    assert found[0].name == "main"
    assert found[0].samples == len(samples)


def test_features_are_those_of_the_samples(tmp_path: Path) -> None:
    samples = make_samples(4000, 4)
    part = SampleColumns(seal(tmp_path / "one", samples))
    assert has_roll_up(part, Filter())
    assert not has_roll_up(part, Filter(kernel=True))
    block = read_part(part, Windows(START - SECOND_NS, 200 * SECOND_NS, np.ones(1, bool)))
    assert block is not None
    assert block.samples.tolist() == [len(samples)]
    assert name_all(block) == count_plainly(samples)  # none has less than 1/8000


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("used", [range(24), range(3, 20)])
def test_seconds_say_what_samples_say(tmp_path: Path, large: bool, used: range) -> None:
    part = SampleColumns(seal(tmp_path / "one", make_samples(MANY, 5), large=large))
    second = int(part.second.min())
    start = int(part.segment.wall_ns(second * SECOND_NS))
    windows = Windows(start, 5 * SECOND_NS, np.isin(np.arange(24), used))
    counted = count_part(part, Filter(), windows, NOTHING)
    rolled = read_part(part, windows)
    assert counted is not None
    assert rolled is not None
    assert (counted.first, rolled.first) == (used[0], used[0])
    assert counted.samples.tolist() == rolled.samples.tolist()
    by_window = dict(zip(counted.folded.tolist(), counted.counts.tolist(), strict=True))
    again = dict(zip(rolled.folded.tolist(), rolled.counts.tolist(), strict=True))
    common = by_window.keys() & again.keys()
    assert len(common) > 20
    assert all(by_window[key] == again[key] for key in common)
    totals = dict(zip(counted.feature.tolist(), counted.total.tolist(), strict=True))
    found = dict(zip(rolled.feature.tolist(), rolled.total.tolist(), strict=True))
    assert all(found[key] == totals[key] for key in common)
    if len(used) == 24:
        assert found == {key: total for key, total in totals.items() if total >= MANY // 8000}
        for key in common:
            one, other = rolled.describe(key), counted.describe(key)
            assert one is not None
            assert other is not None
            assert one[0] == other[0]
            assert one[1] == pytest.approx(other[1], abs=0.01)


@pytest.mark.parametrize("large", [False, True])
def test_a_comparison_finds_the_same_either_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    samples = make_samples(MANY, 6)
    burst = [
        Sample(110 + number / 500, 1, 99, "storm", "main;a;hot;k9_[k]") for number in range(2000)
    ]
    segment = seal(tmp_path / "one", [*samples, *burst], large=large)
    start = int(segment.wall_ns(int(SampleColumns(segment).second.min()) * SECOND_NS))
    span = (start + 110 * SECOND_NS, start + 114 * SECOND_NS)
    against = (start, start + 108 * SECOND_NS)

    def run() -> dict[tuple[str, str], tuple[int, bool]]:
        found = compare(
            [lambda: SampleColumns(segment, *span)], [lambda: SampleColumns(segment, *against)],
            span, against, Filter(), listed=0,
        )  # fmt: skip
        flagged = [each for each in found.changes if each.flagged]
        return {(each.kind, each.name): (each.window, each.flagged) for each in flagged}

    rolled = run()
    monkeypatch.setattr("nodescope.analysis.compare.has_roll_up", lambda part, chosen: False)
    assert rolled == run()
    assert ("comm", "storm") in rolled
    assert any(kind == "kernel" for kind, _ in rolled)


def test_a_trunk_gets_the_innermost_function_back() -> None:
    depth, frame = np.array([0, 1, 1, 0], np.int16), np.array([5, 6, 7, 8], np.int32)
    row_of, leaf = np.array([1, 1, 2, -1, 0, 3]), np.array([9, 6, 9, 4, 3, 9])
    tree = graft_leaves(depth, frame, row_of, leaf)
    assert tree.depth.tolist() == [0, 0, 1, 1, 2, 1, 2, 0, 1]
    assert tree.frame.tolist() == [4, 5, 3, 6, 9, 7, 9, 8, 9]
    assert tree.row_of.tolist() == [4, 3, 6, 0, 2, 8]
    assert tree.frame[tree.row_of].tolist() == leaf.tolist()


def test_a_segment_with_few_samples_has_none(tmp_path: Path) -> None:
    segment = seal(tmp_path / "few", make_samples(300, 1), rolled=False)
    tables = segment.description.tables
    assert not {"functions", "features", "feature_seconds"} & set(tables)
    assert not has_roll_up(SampleColumns(segment), Filter())
    assert Archive.open(tmp_path / "few").segments()


def test_the_window_that_a_time_is_in() -> None:
    windows = Windows(100, 10, np.array([True, False, True]))
    assert windows.find(np.array([99, 100, 109, 110, 120, 129, 130])).tolist() == [
        -1, 0, 0, -1, 2, 2, -1,
    ]  # fmt: skip
    assert Windows(0, 5, np.ones(2, bool)).find(np.array([4, 5])).tolist() == [0, 1]


@pytest.mark.parametrize("large", [False, True])
def test_a_comparison_notes_where_narrow_paths_do_not_count(tmp_path: Path, large: bool) -> None:
    segment = seal(tmp_path / "a", make_samples(MANY, 3), large=large)
    middle, end = (segment.wall_from_ns + segment.wall_to_ns) // 2, segment.wall_to_ns
    one, other = (middle, end), (segment.wall_from_ns, middle)
    now, before = ([partial(SampleColumns, segment, *span)] for span in (one, other))
    found = compare(now, before, one, other, Filter())
    said = [note for note in found.notes if "1/8000 of its segment's samples" in note]
    assert len(said) == large


def test_samples_counted_in_parts_give_the_same_tables(tmp_path: Path) -> None:
    samples = make_samples(2_000, 3)
    whole = seal(tmp_path / "whole", samples)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (feature_counts, "_SAMPLES_AT_ONCE"), (feature_counts, "_AT_ONCE"),
            (wide_paths, "_AT_ONCE"),
        ):  # fmt: skip
            patch.setattr(module, name, 97)
        parts = seal(tmp_path / "parts", samples)
    assert "core_paths" in whole.description.tables
    for table in whole.description.tables:
        assert parts.read(table).equals(whole.read(table)), table
