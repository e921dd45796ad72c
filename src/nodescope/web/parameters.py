"""The parameters that many routes share, by the same words as the command line's."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

from nodescope.analysis.function_pattern import parse_function_pattern
from nodescope.errors import UsageError
from nodescope.quantities import parse_cpu_list
from nodescope.web.declaration import Parameter, choice, number, text
from nodescope.web.snapshot import LATEST_NS

MS = 1_000_000
LATEST_MS = LATEST_NS // MS
_TIME_HINT = "write it as milliseconds since the epoch, or from= and to= like 2026-05-01T12:00:05Z"
_MOST_STARS = 6


def parse_ms(given: str) -> int:
    """Nanoseconds from milliseconds with a fraction."""
    if not re.fullmatch(r"[0-9]{1,13}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", given):
        raise UsageError(f"not a time: {given!r:.80}", hint=_TIME_HINT)
    milliseconds = Decimal(given)  # a double would be a fifth of a microsecond off
    if milliseconds > LATEST_MS:
        raise UsageError(f"not a time: {given!r:.80} is after 2262", hint=_TIME_HINT)
    return round(milliseconds * MS)


def parse_moment(given: str) -> int:
    """Nanoseconds since the epoch, or ISO 8601; without a zone it is UTC."""
    if re.fullmatch(r"[0-9]{1,19}", given):
        if int(given) > LATEST_NS:
            raise UsageError(f"not a time: {given!r:.80} is after 2262", hint=_TIME_HINT)
        return int(given)
    try:
        moment = datetime.fromisoformat(given.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"not a time: {given!r:.80}", hint=_TIME_HINT) from error
    time_ns = (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1000
    if not 0 <= time_ns <= LATEST_NS:
        raise UsageError(f"not a time: {given!r:.80} is before 1970 or after 2262", hint=_TIME_HINT)
    return time_ns


def parse_cpus(given: str) -> frozenset[int]:
    """`0-5,39`."""
    cpus = frozenset(parse_cpu_list(given))
    if not cpus:
        raise UsageError("no core named", hint="write it like 0-5,39")
    return cpus


def parse_pids(given: str) -> frozenset[int]:
    """`812,4021`."""
    numbers = given.split(",")
    if not all(re.fullmatch(r"[0-9]{1,9}", each) for each in numbers):
        raise UsageError(f"not process ids: {given!r:.80}", hint="write them like 812,4021")
    return frozenset(map(int, numbers))


def parse_names(given: str) -> tuple[str, ...]:
    """One name; `*` matches anything."""
    if given.count("*") > _MOST_STARS:
        raise UsageError("too many `*`", hint=f"give at most {_MOST_STARS}")
    return (given,)


def _time(name: str, meaning: str) -> tuple[Parameter, Parameter]:
    return (
        number(f"{name}_ms", f"{meaning}, in milliseconds since the epoch", parse_ms, 0, LATEST_MS),
        text(name, f"{meaning}, in nanoseconds since the epoch or ISO 8601", 40, parse_moment),
    )


FROM, TO = _time("from", "start of the window"), _time("to", "end of the window")
WINDOW = (*FROM, *TO)
AT = (*_time("at", "the moment"),)
BASE = (*_time("base_from", "start of the window to compare with"),
        *_time("base_to", "its end"))  # fmt: skip
FILTERS = (
    text("cpu", "only these cores, as in 0-5,39", 2000, parse_cpus),
    text("pid", "only these processes, as in 812,4021", 2000, parse_pids),
    text("comm", "only threads of this name; `*` matches anything", 200, parse_names),
    text("cgroup", "only cgroups with this in their path, or of the pod or container called so",
         1000, parse_names),
    choice("mode", "only kernel or only user", ("user", "kernel")),
    text("frame", "only stacks with a function that matches this expression", 500,
         parse_function_pattern),
    text("no_frame", "only stacks without a function that does", 500, parse_function_pattern),
)  # fmt: skip
REVISION = text("revision", "ignored: tells caches apart", 64)
