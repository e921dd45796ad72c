"""What the third format wrote stays readable: a bundle made by the version that wrote it.

Its two segments are of the samples of `tests/analysis/conftest.py`, and have them as plain
numbers, not by thread.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from tests.analysis.conftest import SAMPLES, write_archive

from nodescope.archive.reader import Archive
from nodescope.records import SEALED_TABLES

BUNDLE = Path(__file__).parent / "format-3.nodescope"


def test_it_is_of_the_third_format() -> None:
    with zipfile.ZipFile(BUNDLE) as file:
        assert json.loads(file.read("archive.json"))["format"] == 3
        assert not [name for name in file.namelist() if name.endswith("threads.parquet")]


def test_it_says_what_the_same_samples_say_today(tmp_path: Path) -> None:
    today = write_archive(tmp_path, [SAMPLES, SAMPLES[:3]])
    for old, new in zip(Archive.open(BUNDLE).segments(), today.segments(), strict=True):
        for table in SEALED_TABLES:
            if table != "threads":
                rows = new.read(table).to_pylist()
                if table == "seconds":  # that version folded nothing, and did not say so
                    rows = [row | {"folded": None} for row in rows]
                assert old.read(table).to_pylist() == rows
