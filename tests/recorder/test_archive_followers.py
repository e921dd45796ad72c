from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from tests.recorder_process import recording

from nodescope.recorder.archive_followers import LATELY_NS, Readers


def test_reading_a_file_is_noticed_and_looking_at_it_is_not(tmp_path: Path) -> None:
    file = tmp_path / "heartbeats.arrows"
    file.write_bytes(b"x")
    readers = Readers()
    readers.watch(tmp_path)
    file.stat()
    assert not readers.lately(1)
    file.read_bytes()
    assert readers.lately(2)
    assert readers.lately(1 + LATELY_NS)
    assert not readers.lately(2 + LATELY_NS)
    readers.close()


def test_what_we_read_ourselves_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    readers = Readers()
    readers.watch(tmp_path)
    (tmp_path / "a").read_bytes()
    readers.forget()
    assert not readers.lately(1)
    readers.close()
    assert not readers.lately(1)


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    readers = Readers()
    readers.watch(tmp_path / "missing")
    readers.watch(None)
    assert not readers.lately(1)
    readers.close()


@pytest.mark.live
@pytest.mark.beside
def test_a_recorder_that_is_read_flushes_more_often(tmp_path: Path) -> None:
    """Flushes every four seconds, unless somebody reads."""
    archive = tmp_path / "archive"
    with recording(archive, "--flush", "4s", "--quiet", "--without", "all") as recorder:
        (path,) = (archive / "open").glob("*/heartbeats.arrows")
        gaps = []

        def grows_within_a_flush() -> bool:
            """Whether it was written to twice in less than the flush interval."""
            data, changed = path.read_bytes(), path.stat().st_mtime_ns
            gaps.append(changed)
            seen = sorted(set(gaps))
            return bool(data) and any(b - a < 3_000_000_000 for a, b in pairwise(seen))

        recorder.wait_for(grows_within_a_flush, "it is written to more often")
