"""Downloads: a window in other tools' formats, or as a bundle; files, so memory stays small."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from nodescope.archive.bundle_writer import write_bundle
from nodescope.errors import UsageError
from nodescope.exchange.export.catalogue import BUNDLE, ExportedWindow, ExportFormat, SampleFormat
from nodescope.exchange.export.stacks import ChosenSamples
from nodescope.wall_time import format_moment
from nodescope.web.question import Question, Reply

MOST_BYTES = 256 << 20


def export(wanted: SampleFormat) -> Callable[[Question], Reply]:
    """Return what answers with a window in one format."""

    def answer(question: Question) -> Reply:
        def write(path: Path) -> None:
            # By its number: gzip would write the file's name into the export.
            with open(os.open(path, os.O_WRONLY), "wb") as file:
                wanted.write(_exported(question), cast("IO[bytes]", _Bounded(file, question.check)))

        return _file(question, write, wanted)

    return answer


class _Bounded:
    """A file to write to while somebody waits for it, and not without end."""

    def __init__(self, file: IO[bytes], check: Callable[[], None]) -> None:
        self._file, self._check = file, check
        self._room = MOST_BYTES
        self.flush = file.flush

    def write(self, data: bytes) -> int:
        self._check()
        self._room -= len(data)
        if self._room < 0:
            raise UsageError(
                "the file would be larger than 256 MiB",
                hint="choose a shorter window or a filter, or export it on the command line",
            )
        return self._file.write(data)


def bundle(question: Question) -> Reply:
    """Everything of the window in one file, for every command and for this page."""
    window = question.window
    if not window.length_ns:
        raise UsageError("nothing was recorded in this window", hint="choose another one")

    def write(path: Path) -> None:
        path.unlink()  # it makes its own, or nothing
        write_bundle(
            question.snapshot.archive,
            path,
            window.from_ns,
            window.to_ns,
            time.time_ns(),
            show=question.show,
        )

    return _file(question, write, BUNDLE)


def _file(question: Question, write: Callable[[Path], None], made: ExportFormat) -> Reply:
    with tempfile.NamedTemporaryFile(prefix="nodescope-export-", delete=False) as file:
        path = Path(file.name)
    try:
        write(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    node = re.sub(r"[^A-Za-z0-9.-]+", "-", question.node)[:60].strip("-.") or "node"
    stamp = re.sub(r"[^0-9TZ]", "", format_moment(question.window.from_ns))
    return Reply(b"", made.media_type, f"{node}-{stamp}.{made.suffix}", path)


def _exported(question: Question) -> ExportedWindow:
    window = question.window
    segments = question.recording.overlapping(window) if window.length_ns else []
    return ExportedWindow(
        question.node, "", window.from_ns, window.to_ns, _parts(question), segments
    )


def _parts(question: Question) -> Iterator[ChosenSamples]:
    chosen = question.filter
    return (ChosenSamples(columns, chosen.samples(columns)) for columns in question.parts())
