"""A diagnosis is the same of a bundle, of a folder, and of a recording held in memory."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.recording.memory import hold_in_memory
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

BUNDLES = sorted((Path(__file__).parent / "bundles").glob("*.bundle"))


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_diagnosed_alike_wherever_it_is_kept(bundle: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle) as file:
        file.extractall(tmp_path)
    bundled, unpacked = Recording.open(bundle), Recording.open(tmp_path)
    expected = _document(bundled)
    assert _document(unpacked) == expected
    assert _document(hold_in_memory(unpacked)) == expected


def _document(recording: Recording) -> object:
    window = Window(recording.extent.from_ns, recording.extent.to_ns)
    return diagnosis_document(diagnose(recording, window))
