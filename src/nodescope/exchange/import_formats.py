"""The formats that can be brought in, and what an importer of one gives and gets.

An importer reads one file and hands rows to a `Sink`, which cuts them into
segments and puts them into the archive as a whole or not at all. It raises
`SourceError` when there is nothing to import; a file that is only whole up to
some offset is imported up to there, and its report says where and why it
stopped.

A new format is a module with a `FORMAT`, listed in `all_formats`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource, source_error
from nodescope.ingest.sink import ImportReport, Sink
from nodescope.records.view import View
from nodescope.records.view_forms import render_command

HEAD_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Peek:
    """The outcome of the first look at a file; unknown is None."""

    node: str | None = None
    wall_from_ns: int | None = None


Progress = Callable[[int], None]
"""Told how many of the file's bytes are done."""


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """One format: how it is recognised, and how it is read."""

    name: str
    detect: Callable[[bytes, Path], bool]  # by the file's first `HEAD_BYTES`, and its name
    peek: Callable[[Path], Peek]  # cheap: to put files in order before any is imported
    import_: Callable[[Path, Sink, Progress], ImportReport]
    # how many of a file's first lines have its form, and of how many: for what is refused
    resembles: Callable[[bytes], tuple[int, int]] | None = None
    has_sample_times: bool = False  # whether it says of each sample when it was taken


def all_formats() -> tuple[ImportFormat, ...]:
    """Every format, the most certain to be recognised first."""
    from nodescope.exchange.core_times import mpstat, sar
    from nodescope.exchange.logs import dmesg_json, journal, journal_export, kernel_log
    from nodescope.exchange.perf_data import importer as perf_data
    from nodescope.exchange.perf_script import importer as perf_script_import
    from nodescope.exchange.profiles import folded, pprof, untimed_script

    return (
        perf_data.FORMAT,
        mpstat.FORMAT,
        dmesg_json.FORMAT,
        journal.JSON_FORMAT,
        journal_export.FORMAT,
        sar.FORMAT,
        pprof.FORMAT,
        kernel_log.FORMAT,
        journal.TEXT_FORMAT,
        perf_script_import.FORMAT,
        untimed_script.FORMAT,
        folded.FORMAT,
    )


def find_format(path: Path) -> ImportFormat:
    """The format of a file; refuses by name what is none of them."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise source_error(path, error) from error
    for known in all_formats():
        if known.detect(head, path):
            return known
    if head.startswith(b"PK\x03\x04"):
        hint = f"a bundle is read as it is: `{render_command(View('diagnose'), path)}`"
        raise MalformedSource(path, "not a capture but a zip file", hint=hint)
    expected = ", ".join(known.name for known in all_formats())
    begins = "it is empty" if not head else f"it begins with {head[:16]!r}{_nearest(head)}"
    raise MalformedSource(path, f"not a capture: {begins}", hint=f"expected one of: {expected}")


def _nearest(head: bytes) -> str:
    """Name the form of text that most lines have, if any line has one."""
    counted = [(*known.resembles(head), known.name) for known in all_formats() if known.resembles]
    alike, lines, name = max(counted)
    return f"; nearest is a {name}: {alike} of {lines} lines have its form" if alike else ""
