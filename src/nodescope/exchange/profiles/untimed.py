"""Formats of profiles without times: stacks with counts, placed before the file was written.

A format is a function that recognises a file and one that parses its stacks; where they are
placed in time, and what is said of that, is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from nodescope.exchange.import_formats import ImportFormat, Peek, Progress
from nodescope.exchange.importer import detects, modified_ns, nothing_in, report_of, whole_blocks
from nodescope.exchange.profiles.spread import Counted, add_spread, span_of
from nodescope.ingest.parsed import UNKNOWN_PID, Notes, ParsedNames
from nodescope.ingest.sink import ImportReport, Sink

MOST_FRAMES = 1024  # of one stack
Parse = Callable[[Iterable[bytes], ParsedNames, Notes], list[Counted]]


def make_untimed_format(
    name: str, looks_like: Callable[[bytes], bool], parse: Parse, what: str
) -> ImportFormat:
    """Return the format of a profile without times; `what` is missing in a file without any."""

    def read(path: Path, sink: Sink, progress: Progress) -> ImportReport:
        names, notes = ParsedNames(), Notes()
        counted = parse(whole_blocks(path, notes, progress), names, notes)
        if not counted:
            raise nothing_in(path, what, notes)
        span_ns = span_of(counted)
        source, from_ns = "the time the file was last written", max(modified_ns(path) - span_ns, 0)
        add_spread(
            sink, path, counted, names, notes, from_ns=from_ns, span_ns=span_ns, source=source
        )
        return report_of(path, name, notes)

    return ImportFormat(name, detects(looks_like), _peek, read)


def _peek(path: Path) -> Peek:
    return Peek(None, modified_ns(path))


def parse_pid(digits: bytes) -> int:
    """Return the id of a process or thread; one that cannot be is unknown."""
    number = int(digits)
    return number if 0 <= number < 1 << 31 else UNKNOWN_PID
