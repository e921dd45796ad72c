"""Moments as people write them, in and out."""

from __future__ import annotations

from datetime import UTC, datetime

from nodescope.errors import UsageError
from nodescope.quantities import SECOND_NS, parse_duration_ns

_HINT = (
    "write it like 2026-05-01T12:00:05Z, '2026-05-01 12:00' (local time), @1777636805 or '5m ago'"
)
_LATEST_NS = 2**63 - 1  # what the archive can hold


def parse_moment_ns(text: str, now_ns: int) -> int:
    """Nanoseconds since the epoch; a time without a zone is this machine's local time."""
    stripped = text.strip()
    try:
        if stripped == "now":
            moment_ns = now_ns
        elif stripped.endswith("ago"):
            moment_ns = now_ns - parse_duration_ns(stripped.removesuffix("ago"))
        elif stripped.startswith("@"):
            seconds, _, fraction = stripped[1:].partition(".")
            moment_ns = int(seconds) * SECOND_NS + int(fraction.ljust(9, "0")[:9] or "0")
        else:
            moment = datetime.fromisoformat(stripped).astimezone(UTC)
            since = moment - datetime(1970, 1, 1, tzinfo=UTC)
            whole = since.days * 86_400 + since.seconds
            moment_ns = whole * SECOND_NS + since.microseconds * 1000
    except (ValueError, OverflowError, UsageError) as error:
        raise UsageError(f"not a time: {text!r}", hint=_HINT) from error
    if not 0 <= moment_ns <= _LATEST_NS:
        raise UsageError(f"not a time: {text!r} is before 1970 or after 2262", hint=_HINT)
    return moment_ns


def format_moment(moment_ns: int) -> str:
    """ISO 8601 in UTC, to the millisecond: sorts as text, and `parse_moment_ns` reads it."""
    seconds, rest = divmod(moment_ns, SECOND_NS)
    stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{stamp}.{rest // 1_000_000:03d}Z"
