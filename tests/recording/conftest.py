"""The same recording in every form there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.recording.recorded_node import NODE, TICK_NS, HandClock, write_node

from nodescope.archive.bundle_writer import write_bundle
from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.recording.memory import MemoryWriter, hold_in_memory
from nodescope.recording.part import Part
from nodescope.recording.recording import Recording


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sealed segments."""
    path = tmp_path_factory.mktemp("recording") / "archive"
    write_node(lambda clock: _open(path, clock), lambda writer: writer.close())
    return path


@pytest.fixture(scope="session")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose last segment is still open."""
    path = tmp_path_factory.mktemp("growing") / "archive"
    writers: list[ArchiveWriter] = []

    def open_run(clock: HandClock) -> ArchiveWriter:
        if writers:
            writers[-1].close()
        writers.append(_open(path, clock))
        return writers[-1]

    write_node(open_run, lambda writer: writer.flush())
    yield path
    writers[-1].close()


def _open(path: Path, clock: HandClock) -> ArchiveWriter:
    return ArchiveWriter.open(path, node=NODE, clock=clock, tick_ns=TICK_NS)


def _write_in_memory() -> Recording:
    parts: list[Part] = []

    def close_run(writer: MemoryWriter) -> None:
        parts[:] = writer.finish().parts

    write_node(lambda clock: MemoryWriter(NODE, clock, TICK_NS, parts), close_run)
    return Recording(parts, NODE)


@pytest.fixture(scope="session", params=["folder", "growing", "bundle", "memory", "held"])
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Recording:
    """The recording; whoever asks it sees no difference."""
    if request.param == "memory":
        return _write_in_memory()
    path: Path = request.getfixturevalue("growing" if request.param == "growing" else "folder")
    if request.param == "held":
        return hold_in_memory(Recording.open(path))
    if request.param == "bundle":
        archive = Archive.open(path)
        extent = Recording.open(path).extent
        path = tmp_path_factory.mktemp("bundle") / "node.bundle"
        write_bundle(archive, path, extent.from_ns, extent.to_ns, 0)
    return Recording.open(path)
