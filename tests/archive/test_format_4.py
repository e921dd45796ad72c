"""What the fourth format wrote stays readable: a bundle made by the version that wrote it.

Its two segments are of the samples of `tests/analysis/conftest.py`, and have them by thread, with
their ticks, in the order of the rows.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
from tests.analysis.conftest import SAMPLES, write_archive

from nodescope.archive.reader import Archive
from nodescope.records import SEALED_TABLES

BUNDLE = Path(__file__).parent / "format-4.nodescope"


def test_it_is_of_the_fourth_format() -> None:
    with zipfile.ZipFile(BUNDLE) as file:
        assert json.loads(file.read("archive.json"))["format"] == 4
        samples = next(name for name in file.namelist() if name.endswith("samples.parquet"))
        stored = pq.read_schema(io.BytesIO(file.read(samples))).names
    assert stored == ["cpu", "tick", "back", "rank"]


def test_it_says_what_the_same_samples_say_today(tmp_path: Path) -> None:
    today = write_archive(tmp_path, [SAMPLES, SAMPLES[:3]])
    for old, new in zip(Archive.open(BUNDLE).segments(), today.segments(), strict=True):
        for table in SEALED_TABLES:
            if table != "threads":  # these are numbered anew
                assert old.read(table).to_pylist() == new.read(table).to_pylist()
        assert {row["often"] for row in old.read("threads").to_pylist()} == {None}
