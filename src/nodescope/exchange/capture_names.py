"""File names that tell when and where: `perf-HOST-YYYYmmdd-HH-MM-SS-120s.stacks`.

A shell loop of `perf record` runs leaves such files. The time is the start, by
that shell's local time; without a zone in it, it is taken as this machine's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from nodescope.quantities import SECOND_NS
from nodescope.wall_time import compose_wall_ns

_NAME = re.compile(
    r"(?:perf[-_.])?(?:(?P<host>[A-Za-z0-9][\w.-]{0,253})[-_.])?"
    r"(?P<date>\d{8})[-_T](?P<hour>\d\d)[-:_]?(?P<minute>\d\d)[-:_]?(?P<second>\d\d)"
    r"(?P<utc>Z)?(?:[-_.](?P<span>\d{1,5})s)?(?=[.]|$)"
)


@dataclass(frozen=True, slots=True)
class NamedCapture:
    """The meaning of a capture file's name."""

    host: str | None
    wall_ns: int
    span_ns: int | None


def parse_capture_name(name: str) -> NamedCapture | None:
    """Host, start and length, if the name is of that form."""
    match = _NAME.match(name)
    if match is None:
        return None
    date = match["date"]
    start = compose_wall_ns(
        int(date[:4]),
        int(date[4:6]),
        int(date[6:]),
        int(match["hour"]),
        int(match["minute"]),
        int(match["second"]),
        0 if match["utc"] else None,
    )
    if start is None:
        return None
    span = int(match["span"]) * SECOND_NS if match["span"] else None
    host = match["host"]
    return NamedCapture(None if host in (None, "perf") else host, start, span)
