"""Dates and times of day as `mpstat` and `sar` write them: by the locale they ran in."""

from __future__ import annotations

import re

from nodescope.wall_time import compose_wall_ns

_DATE_FORMS = (
    re.compile(r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})$"),
    re.compile(r"(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})\.?$"),
    re.compile(r"(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4}|\d{2})$"),
    re.compile(r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}|\d{2})$"),
    re.compile(r"(?P<d>\d{1,2})/(?P<m>\d{1,2})/(?P<y>\d{4}|\d{2})$"),
    re.compile(r"(?P<d>\d{1,2})-(?P<m>\d{1,2})-(?P<y>\d{4}|\d{2})$"),
)


def parse_date(text: str) -> tuple[int, int, int] | None:
    """Return a date as `%x` of some locale writes it; month first where both would do, as in C."""
    for form in _DATE_FORMS:
        match = form.match(text.strip())
        if match is None:
            continue
        year, month, day = int(match["y"]), int(match["m"]), int(match["d"])
        year += 2000 if year < 100 else 0
        if compose_wall_ns(year, month, day, 0, 0, 0, 0) is not None:
            return year, month, day
    return None


_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?:[ \u202f]?([AaPp])\.?[Mm]\.?)?(?=\s|$)")


def parse_clock(text: str) -> tuple[int, int] | None:
    """Return the seconds into the day of `03:08:22` or `03:08:22 AM`, and where it ends."""
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
