from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.archive.layout import create_archive
from nodescope.archive.marks import Mark, list_marks, read_mark, remove_mark, write_mark
from nodescope.errors import ArchiveError

MARK = Mark("17-1", "mark", "node", "rollout", "root", 17, 5, "boot")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_archive(tmp_path / "archive", 0, {})
    return tmp_path / "archive"


def test_a_mark_waits_until_it_is_removed(root: Path) -> None:
    assert list_marks(root) == []
    write_mark(root, MARK)
    assert list_marks(root) == ["17-1"]
    assert read_mark(root, "17-1") == MARK
    remove_mark(root, "17-1")
    remove_mark(root, "17-1")
    assert list_marks(root) == []
    assert read_mark(root, "17-1") is None


def test_a_folder_that_is_no_archive_is_not_marked(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError):
        write_mark(tmp_path, MARK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"kind": "oom_kill", "subject": "", "text": "", "user": "", "wall_ns": 1}',
     '{"kind": "mark", "subject": "", "text": "", "user": "", "wall_ns": true}'],
)  # fmt: skip
def test_what_is_no_mark_is_said_to_be_none(root: Path, content: str) -> None:
    write_mark(root, MARK)
    (root / "marks/17-1.json").write_text(content)
    with pytest.raises(ArchiveError):
        read_mark(root, "17-1")


def test_names_that_start_with_a_dot_are_nobody_s(root: Path) -> None:
    write_mark(root, MARK)
    (root / "marks/.half.json").write_text("{")
    assert list_marks(root) == ["17-1"]
