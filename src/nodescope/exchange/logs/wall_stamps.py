"""Wall times at the start of a log line, as syslog and `journalctl` write them.

    2026-11-16T03:08:22.123456+01:00 host …     ISO 8601: rsyslog, RFC 5424, short-iso
    Nov 16 03:08:22 host …                      RFC 3164 and journalctl's short: no year, no zone
    Nov 16 03:08:22.123456 host …               short-precise, the node logs of the kubelet
    Mon 2026-11-16 03:08:22 UTC host …          short-full and with-unit

A time without a year is given the latest year that is not after the file's last change. A time
without a zone is taken as this machine's local time; both are remarked in the report.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from nodescope.ingest.parsed import Notes
from nodescope.quantities import SECOND_NS
from nodescope.wall_time import MONTHS, compose_wall_ns, match_iso

NO_ZONE = "its times have no zone; they were taken as this machine's local time"
NO_YEAR = "its times have no year; the latest that is not after the file's last change was taken"
_DAY_NS = 86_400 * SECOND_NS
_FORMER = re.compile(
    r"([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?= )", re.ASCII
)
_FULL = re.compile(r"[A-Z][a-z]{2} (?=\d{4}-)", re.ASCII)
_ZONE = re.compile(r" ([A-Z]{2,5}|[+-]\d{2,4})(?= )", re.ASCII)


class WallStamp(NamedTuple):
    """A wall time, what it lacks, and where in the line it ends."""

    time_ns: int
    zoned: bool
    dated: bool  # has a year
    end: int


def match_stamp(text: str, written_ns: int | None) -> WallStamp | None:
    """Return the wall time that a line begins with; `written_ns` is the file's last change."""
    if iso := match_iso(text[:40]):
        return WallStamp(iso[0], iso[1], True, iso[2])
    if match := _FORMER.match(text):
        return _of_former(match, written_ns)
    if weekday := _FULL.match(text):
        return _of_full(text, weekday.end())
    return None


def note_lacks(stamp: WallStamp, notes: Notes) -> None:
    """Remark what had to be assumed of a time."""
    if not stamp.zoned:
        notes.remark(NO_ZONE)
    if not stamp.dated:
        notes.remark(NO_YEAR)


def resolve_year(
    month: int, day: int, clock: tuple[int, int, int], written_ns: int | None
) -> int | None:
    """Return the latest such moment that is not after a file's last change, in local time."""
    latest_ns = (time.time_ns() if written_ns is None else written_ns) + _DAY_NS
    year = time.localtime(latest_ns // SECOND_NS).tm_year
    for each in range(year, year - 5, -1):  # the 29th of February is in one of them
        if month == 2 and day == 29 and not _is_leap(each):
            continue
        moment = compose_wall_ns(each, month, day, *clock, None)
        if moment is not None and moment <= latest_ns:
            return moment
    return None


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _of_former(match: re.Match[str], written_ns: int | None) -> WallStamp | None:
    month = MONTHS.get(match[1])
    if month is None:
        return None
    clock = int(match[3]), int(match[4]), int(match[5])
    moment = resolve_year(month, int(match[2]), clock, written_ns)
    if moment is None:
        return None
    return WallStamp(moment + int((match[6] or "").ljust(9, "0")), False, False, match.end())


def _of_full(text: str, start: int) -> WallStamp | None:
    iso = match_iso(text[start : start + 40])
    if iso is None:
        return None
    end = start + iso[2]
    zone = _ZONE.match(text, end)
    if zone is None:
        return WallStamp(iso[0], iso[1], True, end)
    if zone[1] in ("UTC", "GMT"):
        exact = match_iso(f"{text[start:end]}Z")
        return None if exact is None else WallStamp(exact[0], True, True, zone.end())
    return WallStamp(iso[0], False, True, zone.end())
