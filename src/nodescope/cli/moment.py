"""Moments as every command takes them, and the recording as it was at one.

Times are read as in `nodescope.wall_time`, and also relative to the recording:
`+60s` from its start, `12:00:05` of its day. Without a zone they are UTC.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.errors import ArchiveError, UsageError
from nodescope.quantities import MINUTE_NS, SECOND_NS, parse_duration_ns
from nodescope.wall_time import MOMENT_HINT, checked_ns, format_moment, parse_moment_ns

if TYPE_CHECKING:
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import TimeExtent

_HINT = f"{MOMENT_HINT}; of a recording also 12:00:05 or +60s from its start"
_UNFLUSHED_NS = MINUTE_NS  # an open recording ends at most this long before the present
_TIME_OF_DAY = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,9})?))?\s*(Z|UTC|[+-]\d\d:?\d\d)?",
    re.IGNORECASE | re.ASCII,
)


def parse_time_ns(text: str, extent: TimeExtent | None, now_ns: int) -> int:
    """Return a moment, also one relative to the recording (None: nothing is recorded)."""
    stripped = text.strip()
    if stripped.startswith("+"):
        if extent is None:
            raise UsageError(
                f"{text!r:.80} counts from the start of a recording, and nothing is recorded",
                hint=_HINT,
            )
        try:
            after_ns = parse_duration_ns(stripped[1:])
        except UsageError as error:  # it names what nobody wrote: a duration without its plus
            raise UsageError(f"not a time: {text!r:.80}", hint=_HINT) from error
        return checked_ns(extent.from_ns + after_ns, text, _HINT)
    of_day = _TIME_OF_DAY.fullmatch(stripped)
    if of_day is None:
        return parse_moment_ns(stripped, now_ns, _HINT)
    hours, minutes, seconds, zone = of_day.groups()
    written = f"{int(hours):02d}:{minutes}:{seconds or '00'}{_zone(zone)}"
    try:
        moments = [parse_moment_ns(f"{day}T{written}", now_ns) for day in _days(extent, now_ns)]
    except UsageError as error:  # it names a day that nobody wrote
        raise UsageError(f"not a time of day: {text!r:.80}", hint=_HINT) from error
    recorded = (ns for ns in moments if extent and extent.from_ns <= ns < extent.to_ns)
    return next(recorded, moments[0])


def _zone(text: str | None) -> str:
    return "Z" if text is None or text.upper() in ("Z", "UTC") else text


def _days(extent: TimeExtent | None, now_ns: int) -> Iterator[str]:
    """Yield the days of a recording, last first, then those its days are in other zones."""
    ends = (now_ns, now_ns) if extent is None else (extent.from_ns, extent.to_ns)
    first, last = (datetime.fromtimestamp(ns // SECOND_NS, UTC).date() for ns in ends)
    for back in range(min((last - first).days, 366) + 1):
        yield (last - timedelta(days=back)).isoformat()
    yield (last + timedelta(days=1)).isoformat()
    yield (first - timedelta(days=1)).isoformat()


def describe_extent(extent: TimeExtent, since_ns: int | None = None) -> str:
    """Return from when to when the recording goes, and since when there are events, if earlier."""
    covers = f"{format_moment(extent.from_ns)} to {format_moment(extent.to_ns)}"
    if since_ns is None or since_ns >= extent.from_ns:
        return f"the recording covers {covers}"
    return f"the recording covers {covers}, and has events since {format_moment(since_ns)}"


def check_recorded(at_ns: int, extent: TimeExtent, now_ns: int) -> None:
    """Refuse a moment outside the recording; the last minute of an open one is inside."""
    to_ns = min(now_ns + 1, extent.to_ns + _UNFLUSHED_NS) if extent.grows else extent.to_ns
    if not extent.from_ns <= at_ns < max(to_ns, extent.to_ns):
        raise UsageError(
            f"nothing was recorded at {format_moment(at_ns)}", hint=describe_extent(extent)
        )


def read_extent(archive: Path) -> TimeExtent | None:
    """Return from when to when an archive is recorded; None if nothing is."""
    from nodescope.recording.recording import Recording

    if not archive.exists():
        return None
    recording = Recording.open(archive)
    return recording.extent if recording.parts else None


def open_moment(args: argparse.Namespace) -> tuple[Recording, int]:
    """Open the recording, to be asked for what was known at `--at`."""
    from nodescope.archive.reader import Archive
    from nodescope.recording.recording import Recording

    path = options.archive_path(args)
    archive = Archive.open(path)
    listing = archive.listing()
    recording = Recording(listing.segments, archive.info.node, listing.lost)
    for error in listing.damaged:
        print(f"nodescope: left out: {error}", file=sys.stderr)
    if not recording.parts:
        status = options.status_command(args)
        raise ArchiveError(path, listing.emptiness, hint=f"see `{status}`")
    now_ns = time.time_ns()
    at_ns = parse_time_ns(args.at, recording.extent, now_ns)
    check_recorded(at_ns, recording.extent, now_ns)
    return recording, at_ns
