"""A window's segments are found without looking at the files of other segments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.analysis.conftest import SAMPLES, write_archive

from nodescope.archive.reader import Archive
from nodescope.errors import ArchiveError
from nodescope.quantities import SECOND_NS
from nodescope.recording.near_window import find_near
from nodescope.recording.recording import Recording
from nodescope.recording.window import TimeExtent, Window

COUNT = 8


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return write_archive(tmp_path / "archive", [SAMPLES] * COUNT)


def names(archive: Archive) -> list[str]:
    return [segment.name for segment in archive.segments()]


def file_of(archive: Archive, name: str) -> Path:
    return archive.root / "segments" / name / "samples.parquet"


def files_of(archive: Archive, name: str) -> list[Path]:
    return sorted((archive.root / "segments" / name).glob("*.parquet"))


def within(archive: Archive, name: str) -> Callable[[TimeExtent], Window]:
    """A window of one second in the middle of a segment."""
    (segment,) = (each for each in archive.segments() if each.name == name)
    middle = (segment.wall_from_ns + segment.wall_to_ns) // 2
    return lambda _: Window(middle, middle + SECOND_NS)


def find(
    archive: Archive, choose: Callable[[TimeExtent], Window], margin_ns: int = 0
) -> tuple[list[str], Window | None, list[ArchiveError]]:
    damaged: list[ArchiveError] = []
    near, window = find_near(archive, choose, margin_ns, damaged.append)
    return [segment.name for segment in near], window, damaged


def test_files_far_from_the_window_are_not_looked_at(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, choose = names(archive), within(archive, names(archive)[3])
    seen: set[str] = set()
    looked = os.lstat

    def watched(path: str) -> os.stat_result:
        seen.add(Path(path).parent.name)
        return looked(path)

    monkeypatch.setattr(os, "lstat", watched)
    assert find(archive, choose)[0] == [recorded[3]]
    assert seen == {recorded[0], recorded[3], recorded[-1]}


def test_a_margin_takes_the_segments_beside(archive: Archive) -> None:
    recorded = names(archive)
    near, _, _ = find(archive, within(archive, recorded[3]), 120 * SECOND_NS)
    assert near == recorded[2:5]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"PAR1")])
def test_damage_in_the_window_is_left_out_and_reported(
    archive: Archive, damage: Callable[[Path], object]
) -> None:
    name = names(archive)[3]
    choose = within(archive, name)
    damage(file_of(archive, name))
    near, window, damaged = find(archive, choose)
    assert near == [name]
    assert window is not None
    assert not Recording(archive.segments()).coverage("samples", window)
    assert [str(error) for error in damaged] == [str(e) for e in archive.listing().damaged]
    assert name in str(damaged[0])


def test_damage_elsewhere_is_not_reported_here(archive: Archive) -> None:
    recorded = names(archive)
    choose = within(archive, recorded[3])
    file_of(archive, recorded[5]).unlink()
    assert find(archive, choose)[2] == []
    assert len(archive.listing().damaged) == 1


def test_the_extent_ends_where_the_whole_segments_end(archive: Archive) -> None:
    recorded = names(archive)
    for number in (0, 6, 7):
        for path in file_of(archive, recorded[number]).parent.glob("*.parquet"):
            path.unlink()
    whole = TimeExtent(archive.segments())

    def choose(extent: TimeExtent) -> Window:
        return Window(extent.from_ns, extent.to_ns)

    near, window, damaged = find(archive, choose)
    assert window == Window(whole.from_ns, whole.to_ns)
    assert near == recorded[1:6]
    assert {Path(error.path).parent.name for error in damaged} == {
        recorded[number] for number in (0, 6, 7)
    }


def test_a_segment_that_retention_removed_is_no_damage(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, choose = names(archive), within(archive, names(archive)[3])
    listing = archive.described()
    monkeypatch.setattr(Archive, "described", lambda self: listing)
    (archive.root / "segments" / recorded[3]).rename(archive.root / "segments" / ".gone")
    near, window, damaged = find(archive, choose)
    assert (near, damaged) == ([], [])
    assert window is not None


def test_nothing_recorded_is_no_window(tmp_path: Path) -> None:
    empty = write_archive(tmp_path / "empty", [])
    assert find(empty, lambda extent: Window(extent.from_ns, extent.to_ns)) == ([], None, [])
