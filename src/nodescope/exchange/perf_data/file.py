"""A `perf.data` file on disk: its bytes, and where its clock stands on the wall.

A file has a clock of its own, most often one that no other clock agrees with.
It is placed on the wall by what the file says (`perf record -k mono` writes a
pair of readings), else by its name, else by when it was last written.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodescope.clock import ClockPair
from nodescope.errors import SourceError, source_error
from nodescope.exchange.capture_names import parse_capture_name
from nodescope.exchange.perf_data.header import PerfHeader


@contextmanager
def mapped(path: Path) -> Iterator[tuple[mmap.mmap, os.stat_result]]:
    """A file's bytes where the kernel has them, and its status."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not status.st_size:
                raise SourceError(path, "it is empty")
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise source_error(path, error) from error
    # Arrays look into it, so it is closed when the last of them is gone.
    yield content, status


def guess_start(header: PerfHeader, path: Path, changed_ns: int) -> int:
    """About when a file starts, on the wall, before its samples are looked at."""
    first, last = header.sample_time or (0, 0)
    named = parse_capture_name(path.name)
    if header.clock is not None and first:
        return header.clock[2] - header.clock[1] + first
    if header.clock is not None:
        return header.clock[2]
    return named.wall_ns if named else changed_ns - (last - first)


def find_clock(
    header: PerfHeader, first_ns: int, last_ns: int, path: Path, changed_ns: int
) -> tuple[ClockPair, str]:
    """One moment on the file's clock and on the wall, and how that is known."""
    if header.clock is not None:
        return ClockPair(header.clock[1], header.clock[2]), "clock readings in the file"
    named = parse_capture_name(path.name)
    if named is not None:
        return ClockPair(first_ns, named.wall_ns), "the file's name, as the first sample"
    return ClockPair(last_ns, changed_ns), "the file's date of change, as the last sample"
