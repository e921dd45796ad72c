"""What the system says about an archive, and what a person can do about it."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from nodescope.archive.files import archive_error
from nodescope.errors import ArchiveError, ArchiveFull

if TYPE_CHECKING:
    from pathlib import Path

    from tests.archive.conftest import Studio, Toolbox


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "--retention-size"),
        (errno.EACCES, "run as root"),
        (errno.EROFS, "mounted read-only"),
        (errno.EEXIST, "a file is where a folder should be"),
        (errno.ENOTDIR, "a file is where a folder should be"),
        (errno.ENOENT, "removed meanwhile"),
        (errno.EIO, "dmesg"),
        (errno.EMFILE, "open files"),
        (errno.ENAMETOOLONG, "--archive"),  # one that has none of its own
    ],
)
def test_every_error_of_the_system_has_a_hint(number: int, hint: str) -> None:
    error = archive_error("/a", OSError(number, os.strerror(number)))
    assert str(error) == f"/a: {os.strerror(number)}"
    assert hint in (error.hint or "")
    assert isinstance(error, ArchiveFull) == (number == errno.ENOSPC)


def test_an_archive_that_is_removed_between_segments_does_not_come_back_in_pieces(
    studio: Studio, tools: type[Toolbox]
) -> None:
    tape = studio.open()
    tape.append(tools.make_samples(0, 10))
    tape.seal()
    shutil.rmtree(studio.root)
    tape.append(tools.make_samples(10, 10))
    with pytest.raises(ArchiveError, match="No such file") as caught:
        tape.writer.flush()
    assert "removed meanwhile" in (caught.value.hint or "")
    assert not studio.root.exists()


def test_an_open_segment_that_is_removed_is_said_so(studio: Studio, tools: type[Toolbox]) -> None:
    tape = studio.open()
    tape.append(tools.make_samples(0, 10))
    tape.writer.flush()
    shutil.rmtree(studio.root)
    with pytest.raises(ArchiveError, match=r"archive: its open segment was removed") as caught:
        tape.writer.close()
    assert caught.value.hint


def test_an_archive_may_lie_deep(studio: Studio, tmp_path: Path) -> None:
    studio.root = tmp_path / "a" / "b" / "archive"
    studio.open().writer.close()
    assert (studio.root / "archive.json").exists()
