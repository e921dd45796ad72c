"""A bundle stores no ids of paths and functions: its answers are those of the folder."""

from __future__ import annotations

import random

import pytest
from tests.analysis.conftest import START, Sample, write_archive

from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import Group, flame_of
from nodescope.analysis.flame_rows import FlameNames, to_tree, whole
from nodescope.analysis.top_functions import RankedFunctions
from nodescope.archive import wide_paths
from nodescope.archive.bundle_writer import write_bundle
from nodescope.archive.reader import Archive
from nodescope.quantities import HOUR_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

_WINDOW = Window(START - HOUR_NS, START + HOUR_NS)


def _samples(seed: int) -> list[Sample]:
    chance = random.Random(seed)
    names = ("main", "work", "read_[k]", "copy_[k]")
    return [
        Sample(
            chance.uniform(0, 100),
            chance.randrange(3),
            chance.randrange(9),
            chance.choice(("app", "kubelet", "sh")),
            ";".join((*chance.choices(names[:2], k=chance.randrange(1, 4)), chance.choice(names))),
            chance.choice(("/a", "/b", "/")),
        )
        for _ in range(200)
    ]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Archive, Archive]:
    """A folder of ten segments that were rolled up, and a bundle of all of it."""
    path = tmp_path_factory.mktemp("ids")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_paths, "MANY", 1)
        folder = write_archive(path / "folder", [_samples(seed) for seed in range(10)])
        write_bundle(folder, path / "bundle", _WINDOW.from_ns, _WINDOW.to_ns, 0)
    return folder, Archive.open(path / "bundle")


def test_the_bundle_has_no_ids_and_is_smaller(both: tuple[Archive, Archive]) -> None:
    folder, bundle = both
    for stored, copied in zip(folder.segments(), bundle.segments(), strict=True):
        for table in ("paths", "core_paths", "functions"):
            assert stored.read(table).column("id").null_count == 0
            assert copied.read(table).column("id").null_count == len(copied.read(table)) > 0
        assert copied.description.bytes < stored.description.bytes


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("kernel", [None, True, False])
@pytest.mark.parametrize("group", ["comm", "cpu", "cgroup", "pod", "none"])
def test_flame_graphs_are_equal(
    both: tuple[Archive, Archive], group: Group, kernel: bool | None, inverted: bool
) -> None:
    trees = []
    for archive in both:
        names, recording = FlameNames(), Recording(archive.segments())
        parts = recording.samples(_WINDOW)
        rows = flame_of(
            parts, Filter(kernel=kernel), names, group=group, inverted=inverted, count=10
        )
        trees.append(to_tree(rows, names, whole(rows)))
    assert trees[0] == trees[1]
    assert trees[0]["children"]


def test_functions_are_equal(both: tuple[Archive, Archive]) -> None:
    folder, bundle = (
        RankedFunctions.of(Recording(archive.segments()).samples(_WINDOW), Filter())
        for archive in both
    )
    assert folder.by_name == bundle.by_name
    assert folder.whole == bundle.whole == 2000
