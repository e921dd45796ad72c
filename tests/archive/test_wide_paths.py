"""Flame graphs of every shape from roll-ups and trunks, against plain counting."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analysis.conftest import START, Sample, write_archive

from nodescope.analysis import flame
from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import Group, flame_of
from nodescope.analysis.flame_rows import SEEN, FlameNames, FlameRows, whole
from nodescope.archive import wide_paths
from nodescope.archive.bundle_writer import write_bundle
from nodescope.archive.reader import Archive
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records import WIDE_PATHS

SECOND = 1_000_000_000
Path_ = tuple[str, ...]


def make_samples(count: int, seed: int) -> list[Sample]:
    """Samples of recursive stacks, some wide and most narrow."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        depth = chance.choice((1, 2, 3, 9, 20))
        names = ["main", *(chance.choice("aaaabcdef") for _ in range(depth))]
        if chance.random() < 0.4:
            names += [f"k{chance.randrange(4)}_[k]" for _ in range(chance.randrange(1, 4))]
        made.append(
            Sample(
                round(chance.random() * 119, 3),
                chance.randrange(4),
                chance.randrange(10, 14),
                chance.choice(("zsh", "app", "python3", "kubelet")),
                ";".join(names),
                chance.choice(("/", "/a", "/b/c")),
            )
        )
    return made


SEGMENTS = [make_samples(40_000, 1), make_samples(30_000, 2)]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two segments sealed as if their samples were many and their trees large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_paths, "MANY", 1)
        patch.setattr(wide_paths, "LARGE_TREE", 1)
        for module in (wide_paths, flame):
            patch.setattr(module, "TRUNK_SAMPLES", 3)
        yield write_archive(tmp_path_factory.mktemp("wide") / "archive", SEGMENTS)


def count_plainly(
    samples: list[Sample], root: Callable[[Sample], str], *, inverted: bool = False
) -> Counter[Path_]:
    counted: Counter[Path_] = Counter()
    for sample in samples:
        path = (root(sample), *(sample.names[::-1] if inverted else sample.names))
        for length in range(1, len(path) + 1):
            counted[path[:length]] += 1
    return counted


def seen(rows: FlameRows, names: FlameNames) -> dict[Path_, int]:
    """The paths of a flame graph that are wide enough to be shown."""
    column = {int(path): at for at, path in enumerate(rows.path.tolist())}
    found = {}
    for at, total in enumerate(rows.total.tolist()):
        if total >= SEEN * whole(rows):
            path, here = [], at
            while True:
                path.append(names.of[int(rows.frame[here])][1])
                if not rows.caller[here]:
                    break
                here = column[int(rows.caller[here])]
            found[tuple(path[::-1])] = total
    return found


SHAPES: dict[str, tuple[dict[str, Any], Callable[[Sample], str], Callable[[Sample], bool]]] = {
    "plain": ({}, lambda s: s.comm, lambda s: True),
    "by core": ({"group": "cpu"}, lambda s: f"cpu {s.cpu}", lambda s: True),
    "by cgroup": ({"group": "cgroup"}, lambda s: s.cgroup, lambda s: True),
    "by process": ({"group": "pid"}, lambda s: f"pid {s.pid}", lambda s: True),
    "bottom-up": ({"inverted": True}, lambda s: s.comm, lambda s: True),
    "of the kernel": ({"kernel": True}, lambda s: s.comm, lambda s: s.frames[-1][2]),
    "of user code": ({"kernel": False}, lambda s: s.comm, lambda s: not s.frames[-1][2]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_segment_is_shown_to_the_last_sample(archive: Archive, shape: str) -> None:
    asked, root, passes = SHAPES[shape]
    asked = dict(asked)
    chosen = Filter(kernel=asked.pop("kernel", None))
    group: Group = asked.get("group", "comm")
    inverted: bool = asked.get("inverted", False)
    part, names = SampleColumns(archive.segments()[0]), FlameNames()
    rows = flame_of([part], chosen, names, group=group, inverted=inverted, count=1)
    samples = [each for each in SEGMENTS[0] if passes(each)]
    assert whole(rows) == len(samples)
    counted = count_plainly(samples, root, inverted=inverted)
    least = SEEN * len(samples)
    assert seen(rows, names) == {path: n for path, n in counted.items() if n >= least}
    assert "_stacks" not in vars(part)


@pytest.mark.parametrize("shape", SHAPES)
def test_many_segments_lack_less_than_half_of_what_is_seen(archive: Archive, shape: str) -> None:
    asked, root, passes = SHAPES[shape]
    asked = dict(asked)
    chosen = Filter(kernel=asked.pop("kernel", None))
    parts = [SampleColumns(segment) for segment in archive.segments()]
    names = FlameNames()
    rows = flame_of(parts, chosen, names, count=360, **asked)
    samples = [each for segment in SEGMENTS for each in segment if passes(each)]
    assert whole(rows) == len(samples)
    counted = count_plainly(samples, root, inverted=bool(asked.get("inverted")))
    found = seen(rows, names)
    for path, total in counted.items():
        if total >= 1.5 * SEEN * len(samples):
            assert total - SEEN / 2 * len(samples) <= found[path] <= total
    assert all(found[path] <= counted[path] for path in found)


def test_a_few_seconds_are_shown_to_the_last_sample(archive: Archive) -> None:
    samples = [each for each in SEGMENTS[0] if 10 <= each.second < 90]
    part = SampleColumns(archive.segments()[0], START + 10 * SECOND, START + 90 * SECOND)
    names = FlameNames()
    rows = flame_of([part], Filter(), names, count=1)
    counted = count_plainly(samples, lambda s: s.comm)
    least = SEEN * len(samples)
    assert seen(rows, names) == {path: n for path, n in counted.items() if n >= least}


def test_paths_have_the_same_id_in_every_segment_and_after_being_cut(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide_paths, "MANY", 1)
    segments = archive.segments()
    path = tmp_path / "cut.nodescope"
    write_bundle(archive, path, segments[0].wall_from_ns + 30 * SECOND, segments[0].wall_to_ns, 0)
    cut = Archive.open(path).segments()[0]
    for table in WIDE_PATHS:
        found = [SampleColumns(each).read_wide(table.name) for each in (*segments, cut)]
        ids = [set(each.id.tolist()) for each in found]
        wide = set(found[0].id[found[0].samples > 200].tolist())
        assert len(wide) > 5
        assert all(wide <= one for one in ids)


def test_two_nodes_with_other_numbers_agree_on_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide_paths, "MANY", 1)
    monkeypatch.setattr(wide_paths, "LARGE_TREE", 1 << 30)
    samples = make_samples(3000, 7)
    shuffled = random.Random(1).sample(samples, len(samples))
    found = []
    for name, each in (("one", samples), ("other", [*make_samples(50, 9), *shuffled])):
        (segment,) = write_archive(tmp_path / name, [each]).segments()
        table = segment.read("paths", ["id", "samples"])
        found.append(dict(zip(*table.to_pydict().values(), strict=True)))
    one, other = found
    common = one.keys() & other.keys()
    assert len(common) > 0.9 * len(one)
    assert all(other[key] >= one[key] for key in common)


def test_a_segment_with_few_samples_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wide_paths, "MANY", 200_000)
    (segment,) = write_archive(tmp_path / "few", [make_samples(500, 1)]).segments()
    assert not {table.name for table in WIDE_PATHS} & set(segment.description.tables)
    assert "trunk" not in segment.description.tables
    assert segment.read("profile")["trunk"].null_count == len(segment.read("profile"))
    assert np.all(segment.read("profile")["samples"].to_numpy() > 0)
