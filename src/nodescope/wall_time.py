"""Wall times as people and ISO 8601 write them, in and out.

Inside, a wall time is nanoseconds since the epoch, UTC. What Nodescope prints is UTC and
ends in `Z`; what people write without a zone is UTC too, on the command line and in the HTTP
API, whatever the zone of the machine. So a printed time can be pasted back. Times that
other programs wrote without a zone (logs, mpstat) are in this machine's zone.
Durations are in `nodescope.quantities`.
"""

from __future__ import annotations

import re
import time
from calendar import timegm
from datetime import UTC, datetime

from nodescope.errors import UsageError
from nodescope.quantities import MILLISECOND_NS, SECOND_NS, parse_duration_ns

LATEST_NS = 2**63 - 1  # in 2262: what 64 bits hold
MOMENT_HINT = (
    "write it like 2026-05-01T12:00:05Z, '2026-05-01 12:00' (UTC), 2026-05-01T08:00:05-04:00, "
    "@1777636805 or '5m ago'"
)
_SINCE_EPOCH = re.compile(r"@([0-9]{1,19})(?:\.([0-9]{0,9})[0-9]*)?")
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(?:(Z)|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
_CTIME = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})", re.ASCII
)
MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}


# -- out ----------------------------------------------------------------------


def format_moment(moment_ns: int) -> str:
    """Return ISO 8601 in UTC, to the millisecond: it sorts as text."""
    seconds, rest = divmod(moment_ns, SECOND_NS)
    stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{rest // MILLISECOND_NS:03d}Z"


def format_time_of_day(moment_ns: int) -> str:
    """Return `12:00:05Z`: the second of its day, in UTC."""
    return datetime.fromtimestamp(moment_ns // SECOND_NS, UTC).strftime("%H:%M:%SZ")


def format_span(from_ns: int, to_ns: int) -> str:
    """Return two moments; the second without its day where that is the same."""
    first, last = format_moment(from_ns), format_moment(to_ns)
    day = len("2026-05-01T")
    return f"{first} to {last.removeprefix(first[:day])}"


# -- in: what people write -----------------------------------------------------


def parse_moment_ns(text: str, now_ns: int, hint: str = MOMENT_HINT) -> int:
    """Return the nanoseconds since the epoch of `now`, `5m ago`, `@1777636805` or ISO 8601.

    A time without a zone is UTC.
    """
    stripped = text.strip()
    if stripped == "now":
        return now_ns
    if stripped.endswith("ago"):
        ago_ns = _parse_ago_ns(stripped.removesuffix("ago"), text, hint)
        return checked_ns(now_ns - ago_ns, text, hint)
    since_epoch = _SINCE_EPOCH.fullmatch(stripped)
    if since_epoch is not None:
        nanoseconds = int((since_epoch[2] or "").ljust(9, "0")[:9])
        return checked_ns(int(since_epoch[1]) * SECOND_NS + nanoseconds, text, hint)
    return parse_date_time_ns(text, hint)


def _parse_ago_ns(duration: str, text: str, hint: str) -> int:
    try:
        return parse_duration_ns(duration)
    except UsageError as error:
        raise UsageError(f"not a time: {text!r:.80}", hint=hint) from error


def parse_date_time_ns(text: str, hint: str = MOMENT_HINT) -> int:
    """Return the nanoseconds since the epoch of an ISO 8601 date and time, in any of its forms.

    A time without a zone is UTC.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"not a time: {text!r:.80}", hint=hint) from error
    seconds = since.days * 86_400 + since.seconds
    return checked_ns(seconds * SECOND_NS + since.microseconds * 1000, text, hint)


def checked_ns(moment_ns: int, text: str, hint: str = MOMENT_HINT) -> int:
    """Return the moment that `text` names; one before 1970 or after 2262 is a `UsageError`."""
    if not 0 <= moment_ns <= LATEST_NS:
        raise UsageError(f"not a time: {text!r:.80} is before 1970 or after 2262", hint=hint)
    return moment_ns


# -- in: what programs write ---------------------------------------------------


def match_iso(text: str) -> tuple[int, bool, int] | None:
    """Return the time at the start of `text`, whether it has a zone, and where it ends.

    To the nanosecond, as Go and journald write it; without a zone it is this machine's.
    """
    match = _ISO.match(text)
    if match is None:
        return None
    zone_s: int | None = None
    if match[8]:
        zone_s = 0
    elif match[9]:
        east = int(match[10]) * 3600 + int(match[11]) * 60
        zone_s = east if match[9] == "+" else -east
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    moment = compose_wall_ns(year, month, day, hour, minute, second, zone_s)
    if moment is None:
        return None
    return moment + int((match[7] or "").ljust(9, "0")), zone_s is not None, match.end()


def parse_ctime(text: str) -> int | None:
    """Return the moment at the start of `text`, written as in `Mon Nov 16 03:08:22 2026`.

    It is in this machine's zone.
    """
    match = _CTIME.match(text)
    if match is None or match[1] not in MONTHS:
        return None
    day, hour, minute, second, year = (int(match[group]) for group in range(2, 7))
    return compose_wall_ns(year, MONTHS[match[1]], day, hour, minute, second, None)


def compose_wall_ns(
    year: int, month: int, day: int, hour: int, minute: int, second: int, zone_s: int | None
) -> int | None:
    """Return the moment; `zone_s` is seconds east of Greenwich, None this machine's zone.

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
