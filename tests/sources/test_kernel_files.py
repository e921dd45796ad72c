"""Small files, read whole; what is not there is absent, or None."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent
from nodescope.sources.kernel_files import KeptFile, read_file, read_number, read_text


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "interrupts"
    path.write_bytes(b"x" * 300_000)
    assert read_file(path) == b"x" * 300_000
    assert read_file(str(path)) == KeptFile(path).read()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_file(tmp_path / "gone")
    assert read_text(tmp_path / "gone") is None
    assert read_number(tmp_path / "gone") is None
    assert read_text(tmp_path) is None  # a folder


@pytest.mark.parametrize(
    ("content", "text", "number"),
    [
        (b"-1\n", "-1", -1),
        (b" 42 \n", "42", 42),
        (b"up\n", "up", None),
        (b"\n", None, None),
        (b"", None, None),
        (b"caf\xe9\n", "caf\ufffd", None),
    ],
)
def test_texts_and_numbers(
    tmp_path: Path, content: bytes, text: str | None, number: int | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert (read_text(path), read_number(path)) == (text, number)


def test_a_kept_file_is_read_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1")
    kept = KeptFile(path)
    path.write_bytes(b"22")
    assert (kept.read(), kept.read_once(), kept.read_once(1)) == (b"22", b"22", b"2")
    kept.close()
