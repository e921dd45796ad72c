"""A device without room, for real: a small tmpfs."""

from __future__ import annotations

import contextlib
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nodescope.archive.reader import Archive
from nodescope.errors import ArchiveError, ArchiveFull

if TYPE_CHECKING:
    from tests.archive.conftest import FakeClock, Studio, Toolbox

pytestmark = pytest.mark.root


@pytest.fixture
def small(tmp_path: Path, clock: FakeClock, tools: type[Toolbox]) -> Iterator[Studio]:
    """An archive on a device of 512 KiB."""
    device = tmp_path / "device"
    device.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "nodescope-test", str(device)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"needs to mount a tmpfs: {mounted.stderr.strip()}")
    try:
        yield tools.Studio(device / "archive", clock)
    finally:
        subprocess.run(["umount", str(device)], check=True)


def _fill(device: Path) -> Path:
    filler = device / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\1" * 4096)
    return filler


def test_a_flush_without_room_is_undone_and_may_be_repeated(
    small: Studio, tools: type[Toolbox]
) -> None:
    tape = small.open()
    tape.append(tools.make_samples(0, 100))
    tape.writer.flush()
    filler = _fill(small.root.parent)
    (directory,) = (small.root / "open").iterdir()
    sizes = {path.name: path.stat().st_size for path in directory.iterdir()}

    tape.append(tools.make_samples(100, 1000))
    for _ in range(3):
        with pytest.raises(ArchiveFull, match="No space left"):
            tape.writer.flush()
        assert {path.name: path.stat().st_size for path in directory.iterdir()} == sizes
        (segment,) = Archive.open(small.root).segments()
        assert tools.read_samples(segment) == Counter(tools.make_samples(0, 100))
    assert not tape.writer.has_room()

    filler.unlink()
    assert tape.writer.flush() > 0
    tape.append(tools.make_samples(1100, 10))
    tape.writer.close()
    (segment,) = Archive.open(small.root).segments()
    assert tools.read_samples(segment) == Counter(tools.make_samples(0, 1110))


def test_sealing_without_room_keeps_the_open_segment(small: Studio, tools: type[Toolbox]) -> None:
    tape = small.open()
    tape.append(tools.make_samples(0, 200))
    tape.seal()
    tape.append(tools.make_samples(200, 300))
    tape.writer.flush()
    before = tools.digests(small.root)
    filler = _fill(small.root.parent)

    with pytest.raises(ArchiveFull):
        tape.writer.seal_segment()
    assert tools.digests(small.root) == before
    assert [path.name for path in (small.root / "segments").glob(".*")] == []
    assert len(list((small.root / "open").iterdir())) == 1

    filler.unlink()
    tape.seal()
    tape.writer.close()
    first, second = Archive.open(small.root).segments()
    assert tools.read_samples(first) == Counter(tools.make_samples(0, 200))
    assert tools.read_samples(second) == Counter(tools.make_samples(200, 300))
    assert {name: tools.digests(small.root)[name] for name in before} == before


def test_a_segment_cannot_be_opened_without_room_until_there_is_some(
    small: Studio, tools: type[Toolbox]
) -> None:
    tape = small.open()
    filler = _fill(small.root.parent)
    tape.append(tools.make_samples(0, 50))
    with pytest.raises(ArchiveFull):
        tape.writer.flush()
    assert list((small.root / "open").iterdir()) == []
    filler.unlink()
    tape.writer.close()
    (segment,) = Archive.open(small.root).segments()
    assert tools.read_samples(segment) == Counter(tools.make_samples(0, 50))


def test_closing_without_room_lets_go_and_the_next_recorder_seals(
    small: Studio, tools: type[Toolbox]
) -> None:
    tape = small.open()
    tape.append(tools.make_samples(0, 50))
    tape.writer.flush()
    filler = _fill(small.root.parent)
    with pytest.raises(ArchiveFull):
        tape.writer.close()
    filler.unlink()
    writer = small.open().writer
    assert [description.samples for description in writer.recovered] == [50]
    writer.close()


def test_a_device_that_fails_otherwise_is_said_so(
    studio: Studio, tools: type[Toolbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = studio.open()
    tape.append(tools.make_samples(0, 50))

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("os.fdatasync", fail)
        with pytest.raises(ArchiveError, match="Input/output error") as caught:
            tape.writer.flush()
        assert not isinstance(caught.value, ArchiveFull)
    tape.writer.close()
    (segment,) = Archive.open(studio.root).segments()
    assert tools.read_samples(segment) == Counter(tools.make_samples(0, 50))
