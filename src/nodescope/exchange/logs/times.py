"""Wall times as logs write them, to nanoseconds since the epoch.

A time without a zone is taken as this machine's local time, and whoever asks is
told so, because a log brought here from elsewhere may mean another.
"""

from __future__ import annotations

import re
import time
from calendar import timegm

from nodescope.quantities import SECOND_NS

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(?:(Z)|([+-])(\d\d):?(\d\d))?"
)
CTIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})")


def wall_ns(
    year: int, month: int, day: int, hour: int, minute: int, second: int, zone_s: int | None
) -> int | None:
    """A moment; `zone_s` is seconds east of Greenwich, None this machine's zone.

    None if there is no such moment, or none after 1970 and before 2100.
    """
    if not (1970 <= year < 2100 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    if not (hour < 24 and minute < 60 and second <= 60):
        return None
    fields = (year, month, day, hour, minute, second, 0, 0, -1)
    if zone_s is None:
        try:
            seconds = int(time.mktime(fields))
        except (OverflowError, ValueError):
            return None
    else:
        seconds = timegm(fields) - zone_s
    return seconds * SECOND_NS if seconds >= 0 else None


def parse_iso(text: str) -> tuple[int, bool, int] | None:
    """Time, whether it had a zone, and where it ended in `text`."""
    match = ISO.match(text)
    if match is None:
        return None
    zone_s: int | None = None
    if match[8]:
        zone_s = 0
    elif match[9]:
        east = int(match[10]) * 3600 + int(match[11]) * 60
        zone_s = east if match[9] == "+" else -east
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    moment = wall_ns(year, month, day, hour, minute, second, zone_s)
    if moment is None:
        return None
    return moment + int((match[7] or "").ljust(9, "0")), zone_s is not None, match.end()


def parse_ctime(text: str) -> int | None:
    """`Mon Nov 16 03:08:22 2026`, in this machine's zone."""
    match = CTIME.match(text)
    if match is None or match[1] not in _MONTHS:
        return None
    day, hour, minute, second, year = (int(match[group]) for group in range(2, 7))
    return wall_ns(year, _MONTHS[match[1]], day, hour, minute, second, None)


_DATE_FORMS = (
    re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})$"),
    re.compile(r"(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})\.?$"),
    re.compile(r"(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4}|\d{2})$"),
    re.compile(r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}|\d{2})$"),
    re.compile(r"(?P<d>\d{1,2})/(?P<m>\d{1,2})/(?P<y>\d{4}|\d{2})$"),
    re.compile(r"(?P<d>\d{1,2})-(?P<m>\d{1,2})-(?P<y>\d{4}|\d{2})$"),
)


def parse_date(text: str) -> tuple[int, int, int] | None:
    """A date as `%x` of some locale writes it; month first where both would do, as in C."""
    for form in _DATE_FORMS:
        match = form.match(text.strip())
        if match is None:
            continue
        year, month, day = int(match["y"]), int(match["m"]), int(match["d"])
        year += 2000 if year < 100 else 0
        if wall_ns(year, month, day, 0, 0, 0, 0) is not None:
            return year, month, day
    return None


_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?:[ \u202f]?([AaPp])\.?[Mm]\.?)?(?=\s|$)")


def parse_clock(text: str) -> tuple[int, int] | None:
    """Seconds into the day from `03:08:22` or `03:08:22 AM`, and where it ended."""
    match = _CLOCK.match(text)
    if match is None:
        return None
    hour, minute, second = int(match[1]), int(match[2]), int(match[3])
    if match[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[4] in "Pp" else 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    return hour * 3600 + minute * 60 + second, match.end()
