"""Hours: the same answers as from their segments, whatever is asked and whatever is lost."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from tests.analysis.conftest import START, HandClock, Sample, write_archive

from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import Group, find_summed, flame_of
from nodescope.analysis.flame_node import FlameNode
from nodescope.analysis.flame_rows import FlameNames, to_tree, whole
from nodescope.analysis.top_functions import RankedFunctions
from nodescope.archive import hours, wide_paths
from nodescope.archive.reader import Archive
from nodescope.archive.retention import Retention, freeze
from nodescope.archive.writer import ArchiveWriter
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

SEGMENTS, PERIOD_S = 23, 120
SHAPES: list[tuple[Group, bool | None, bool]] = [
    ("comm", None, False),
    ("cpu", None, False),
    ("cgroup", None, False),
    ("comm", True, False),
    ("comm", False, False),
    ("comm", None, True),
]
END = START + SEGMENTS * PERIOD_S * SECOND_NS


@pytest.fixture(autouse=True)
def short_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an hour have five segments, and roll up small ones."""
    monkeypatch.setattr(hours, "HOUR_NS", 5 * PERIOD_S * SECOND_NS)
    monkeypatch.setattr(wide_paths, "MANY", 1)


def _samples(seed: int) -> list[Sample]:
    chance = random.Random(seed)
    names = ("main", "work", f"job{seed % 4}", "read_[k]", "copy_[k]")
    return [
        Sample(
            chance.uniform(0, 119),
            chance.randrange(3),
            chance.randrange(9),
            chance.choice(("app", "kubelet", f"sh{seed % 3}")),
            ";".join((*chance.choices(names[:3], k=chance.randrange(1, 4)), chance.choice(names))),
            chance.choice(("/a", "/b", f"/c{seed % 5}")),
        )
        for _ in range(chance.randrange(20, 60))
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An archive of some short hours."""
    write_archive(tmp_path / "archive", [_samples(seed) for seed in range(SEGMENTS)])
    return tmp_path / "archive"


def _open(path: Path) -> tuple[Recording, Recording]:
    """The recording with its hours, and without."""
    archive = Archive.open(path)
    segments = archive.segments()
    return Recording(segments, hours=archive.hours), Recording(segments)


def _count(recording: Recording, window: Window) -> int:
    return len(list(recording.samples(window, "paths")))


def _flame(
    recording: Recording, window: Window, group: Group, kernel: bool | None, inverted: bool
) -> FlameNode:
    count, chosen, names = len(recording.overlapping(window)), Filter(kernel=kernel), FlameNames()
    table = find_summed(chosen, group, inverted, count)
    parts = recording.samples(window, table)
    rows = flame_of(parts, chosen, names, group=group, inverted=inverted, count=count)
    return _in_order(to_tree(rows, names, whole(rows)))


def _in_order(node: FlameNode) -> FlameNode:
    """The node with its children by name: those of equal width come in any order."""
    children = sorted(map(_in_order, node["children"]), key=lambda each: each["name"])
    return {**node, "children": children}


def _check(path: Path, window: Window) -> None:
    with_hours, without = _open(path)
    for shape in SHAPES:
        assert _flame(with_hours, window, *shape) == _flame(without, window, *shape)
    found, expected = (
        RankedFunctions.of(each.samples(window, "functions"), Filter())
        for each in (with_hours, without)
    )
    assert found.by_name == expected.by_name
    assert found.whole == expected.whole


def _members_are_there(path: Path) -> bool:
    names = {segment.name for segment in Archive.open(path).segments()}
    return all(names.issuperset(hour.members) for hour in hours.read_hours(path))


def test_windows_of_any_length_answer_as_segments_do(folder: Path) -> None:
    with_hours, without = _open(folder)
    all_of_it = Window(START - SECOND_NS, END + SECOND_NS)
    assert _count(with_hours, all_of_it) < _count(without, all_of_it) / 2
    _check(folder, all_of_it)
    chance = random.Random(4)
    for _ in range(5):
        from_ns, to_ns = sorted(chance.randrange(START, END) for _ in range(2))
        _check(folder, Window(from_ns, to_ns))


def test_hours_at_the_edges_are_read_by_segment(folder: Path) -> None:
    with_hours, without = _open(folder)
    hour = hours.read_hours(folder)[1]
    inside = [segment for segment in without.parts if segment.name in hour.members]
    exact = Window(inside[0].wall_from_ns, inside[-1].wall_to_ns + 1)
    assert _count(with_hours, exact) == 1
    assert _count(with_hours, Window(exact.from_ns + 1, exact.to_ns)) == len(hour.members)
    assert _count(with_hours, Window(exact.from_ns, exact.to_ns - 1)) == len(hour.members)


@pytest.mark.parametrize("how", ["cut", "missing", "no description", "garbage", "half-built"])
def test_a_damaged_hour_is_passed_over_and_made_anew(folder: Path, how: str) -> None:
    broken = hours.read_hours(folder)[1].directory
    if how == "cut":
        data = (broken / "paths.parquet").read_bytes()
        (broken / "paths.parquet").write_bytes(data[: len(data) // 2])
    elif how == "missing":
        (broken / "frames.parquet").unlink()
    elif how == "no description":
        (broken / hours.HOUR_FILE).unlink()
    elif how == "garbage":
        (broken / hours.HOUR_FILE).write_bytes(b'{"format":4,"segments":[1],"tables":7}')
    else:
        broken.rename(broken.with_name(f".{broken.name}"))
    window = Window(START - SECOND_NS, END + SECOND_NS)
    before = len(Archive.open(folder).hours())
    _check(folder, window)
    clock = HandClock(END - START + 1_000 * SECOND_NS)
    with ArchiveWriter.open(folder, node={"boot_id": "b"}, clock=clock, tick_ns=1000) as writer:
        writer.append("heartbeats", _heartbeat(clock))
    assert len(Archive.open(folder).hours()) == before + 1
    assert not [path for path in (folder / "hours").iterdir() if path.name.startswith(".")]
    _check(folder, window)


def _heartbeat(clock: HandClock) -> dict[str, list[object]]:
    return {"time_ns": [clock.monotonic_ns()], "wall_ns": [clock.wall_ns()]}


def test_an_hour_goes_with_the_first_of_its_segments(folder: Path) -> None:
    window = Window(START - SECOND_NS, END + SECOND_NS)
    before = len(hours.read_hours(folder))
    frozen = Archive.open(folder).segments()[2]
    freeze(folder, frozen.wall_from_ns + 1, frozen.wall_to_ns - 1, "kept", START)
    for left in (20, 16, 11):
        clock = HandClock(END - START + 1_000 * SECOND_NS)
        retention = Retention(age_ns=left * PERIOD_S * SECOND_NS)
        ArchiveWriter.open(
            folder, node={"boot_id": "b"}, clock=clock, tick_ns=1000, retention=retention
        ).close()
        assert _members_are_there(folder)
        assert frozen.name in {segment.name for segment in Archive.open(folder).segments()}
        _check(folder, window)
    assert 0 < len(hours.read_hours(folder)) < before


def test_an_hour_without_one_of_its_segments_does_not_count(folder: Path) -> None:
    gone, cut = (hour.members[1] for hour in hours.read_hours(folder)[1:3])
    shutil.rmtree(folder / "segments" / gone)
    (folder / "segments" / cut / "paths.parquet").unlink()
    _check(folder, Window(START - SECOND_NS, END + SECOND_NS))
