"""What the first format wrote stays readable: a bundle made by the version that wrote it.

Two segments of a hand-made recording (`tests/analysis/conftest.py`, eight samples), each
with readings of two cores, one event and one gap.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import flame_of
from nodescope.analysis.flame_rows import FlameNames, whole
from nodescope.analysis.top import rank
from nodescope.archive.bundle_writer import write_bundle
from nodescope.archive.reader import Archive
from nodescope.recording.recording import Recording
from nodescope.recording.window import TimeExtent, Window
from nodescope.records import SEALED_TABLES

BUNDLE = Path(__file__).parent / "format-1.nodescope"


@pytest.fixture(params=["bundle", "folder"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Archive:
    if request.param == "bundle":
        return Archive.open(BUNDLE)
    with zipfile.ZipFile(BUNDLE) as file:
        file.extractall(tmp_path)
    return Archive.open(tmp_path)


def everything(archive: Archive) -> Window:
    extent = TimeExtent(archive.segments())
    return Window(extent.from_ns, extent.to_ns)


def test_it_is_of_the_first_format() -> None:
    with zipfile.ZipFile(BUNDLE) as file:
        assert json.loads(file.read("archive.json"))["format"] == 1


def test_samples(archive: Archive) -> None:
    listing = archive.listing()
    assert not listing.damaged
    parts = list(Recording(listing.segments).samples(everything(archive)))
    entries = {entry.name: entry.samples for entry in rank(parts, Filter(), "comm")}
    assert entries == {"app": 4, "kubelet": 2, "kworker/0:1": 1, "python3": 1}
    functions = {entry.name: entry.samples for entry in rank(parts, Filter(), "function")}
    assert functions["walk"] == 2
    assert whole(flame_of(parts, Filter(), FlameNames(), count=len(parts))) == 8
    # As if there were many segments: they have no roll-up of paths, and need none.
    assert whole(flame_of(parts, Filter(), FlameNames(), count=360)) == 8


def test_what_later_formats_added_is_missing_and_not_zero(archive: Archive) -> None:
    events = Recording(archive.segments()).events(everything(archive))
    assert [event.message for event in events] == ["segment 0 began", "segment 1 began"]
    assert all(event.cpu is None and not event.details for event in events)
    for segment in archive.segments():
        for table in SEALED_TABLES:
            assert len(segment.read(table)) == (
                segment.description.tables[table].rows if table in segment.description.tables else 0
            )


def test_cores_and_gaps(archive: Archive) -> None:
    readings = list(Recording(archive.segments()).core_readings(everything(archive)))
    assert sum(len(part.cpu) for part in readings) >= 12
    gaps = [gap for segment in archive.segments() for gap in segment.description.gaps]
    assert [(gap.source, gap.cpu, gap.lost) for gap in gaps] == [("cores", 1, 3)] * 2


def test_a_part_of_it_goes_into_a_bundle_of_today(archive: Archive, tmp_path: Path) -> None:
    window = everything(archive)
    path = tmp_path / "part.nodescope"
    write_bundle(archive, path, window.from_ns + 1_000_000_000, window.to_ns, 0)
    again = Archive.open(path)
    samples = sum(segment.description.samples for segment in again.segments())
    assert samples == 6  # without the two of the first second
