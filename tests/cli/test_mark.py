"""`nodescope mark` and `freeze` as a person meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.analysis.conftest import SAMPLES, write_archive

from nodescope.archive.marks import list_marks

if TYPE_CHECKING:
    from tests.cli.conftest import Nodescope


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    write_archive(tmp_path / "archive", [SAMPLES])
    return tmp_path / "archive"


@pytest.mark.parametrize("when", ["2126-01-01", "2099-01-01T00:00:00Z"])
def test_a_mark_in_the_future_is_refused(nodescope: Nodescope, archive: Path, when: str) -> None:
    result = nodescope("mark", "future", "--at", when, "--archive", archive)
    assert result.code == 2
    assert "is in the future" in result.err
    assert "UTC" in result.err.partition("hint:")[2]
    assert list_marks(archive) == []


def test_a_mark_before_the_recording_is_made_with_a_note(
    nodescope: Nodescope, archive: Path
) -> None:
    result = nodescope("mark", "old", "--at", "2001-01-01 12:00", "--archive", archive)
    assert result.code == 0
    assert "before the recording, which starts at" in result.err
    assert len(list_marks(archive)) == 1


def test_a_mark_of_now_needs_no_note(nodescope: Nodescope, archive: Path) -> None:
    assert nodescope("mark", "now", "--archive", archive).err == ""


@pytest.mark.parametrize("words", [["mark", "hi"], ["mark", "hi", "--at", "5m ago"],
                                   ["freeze", "--last", "5s"], ["freeze", "--list"]])  # fmt: skip
def test_a_bundle_can_only_be_read(
    nodescope: Nodescope, archive: Path, tmp_path: Path, words: list[str]
) -> None:
    bundle = tmp_path / "a.nodescope"
    assert nodescope("export", "bundle", "--archive", archive, "--output", bundle).code == 0
    result = nodescope(*words, "--archive", bundle)
    assert result.code == 2
    assert "a bundle can only be read" in result.err
    assert "or a bundle" not in result.err


def test_ids_of_people_and_of_the_recorder_stand_below_one_another(
    nodescope: Nodescope, archive: Path
) -> None:
    assert nodescope("freeze", "--last", "1s", "--reason", "mine", "--archive", archive).code == 0
    frozen = json.loads((archive / "frozen/0001.json").read_text())
    (archive / "frozen/auto-0001.json").write_text(json.dumps(frozen))
    lines = nodescope("freeze", "--list", "--archive", archive).out.splitlines()
    assert len({line.index("mine") for line in lines}) == 1
    assert len({line.index(" to ") for line in lines}) == 1
