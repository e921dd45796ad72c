"""What the second format wrote stays readable: files made by the version that wrote them.

`format-2.nodescope` has two segments of made-up samples (400 and 300) with a roll-up of
their wide paths; `format-2-open.zip` is an archive whose recorder was killed with an open
segment of 200 samples, its stacks as rows of `calls`.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import flame_of
from nodescope.analysis.flame_rows import FlameNames, whole
from nodescope.analysis.top import rank
from nodescope.archive.reader import Archive
from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.recording.sample_columns import SampleColumns

FOLDER = Path(__file__).parent
BUNDLE, LEFT_OPEN = FOLDER / "format-2.nodescope", FOLDER / "format-2-open.zip"


def test_it_is_of_the_second_format() -> None:
    with zipfile.ZipFile(BUNDLE) as file:
        assert json.loads(file.read("archive.json"))["format"] == 2


def test_views_of_a_bundle() -> None:
    parts = [SampleColumns(segment) for segment in Archive.open(BUNDLE).segments()]
    assert [len(part.time_ns) for part in parts] == [400, 300]
    functions = {entry.name: entry.samples for entry in rank(parts, Filter(), "function")}
    assert functions["main"] == 700
    assert functions["a"] == 303
    for shape in ({}, {"inverted": True}, {"group": "cpu"}, {"group": "cgroup"}):
        for count in (2, 360):
            rows = flame_of(parts, Filter(), FlameNames(), count=count, **shape)
            assert whole(rows) == 700


def test_a_segment_that_was_left_open(tmp_path: Path) -> None:
    with zipfile.ZipFile(LEFT_OPEN) as file:
        file.extractall(tmp_path)
    (reading,) = Archive.open(tmp_path).segments()
    assert len(SampleColumns(reading).profile) == 200
    with ArchiveWriter.open(
        tmp_path,
        node={"name": "hand"},
        clock=SystemClock(),
        tick_ns=1000,
        retention=Retention(age_ns=1 << 62),
    ) as writer:
        (recovered,) = writer.recovered
        assert recovered.samples == 200
    (sealed,) = Archive.open(tmp_path).segments()
    functions = {
        each.name: each.samples for each in rank([SampleColumns(sealed)], Filter(), "function")
    }
    assert functions["main"] == 200
    assert functions["k0"] == 21
