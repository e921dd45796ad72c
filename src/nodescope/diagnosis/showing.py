"""Commands that show a piece of evidence."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(time_ns: int) -> str:
    """A wall time as the command line takes it."""
    whole = datetime.fromtimestamp(time_ns // 1_000_000_000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{time_ns % 1_000_000_000 // 1_000_000:03d}Z"


def around(time_ns: int, seconds: int = 15) -> str:
    """The options for a window around a moment."""
    return f"--at {moment(time_ns)} --around {seconds}s"


def between(from_ns: int, to_ns: int) -> str:
    """The options for a window."""
    return f"--from {moment(from_ns)} --to {moment(to_ns)}"
