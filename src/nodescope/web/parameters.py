"""The parameters that many routes share, by the same words as the command line's."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial

from nodescope.errors import UsageError
from nodescope.quantities import MILLISECOND_NS
from nodescope.records.sample_filter import FILTER_OPTIONS, SAMPLE_MODES, FilterOption, check_filter
from nodescope.wall_time import LATEST_NS, checked_ns, parse_date_time_ns
from nodescope.web.declaration import Parameter, choice, number, text

LATEST_MS = LATEST_NS // MILLISECOND_NS
_TIME_HINT = "write it as milliseconds since the epoch, or from= and to= like 2026-05-01T12:00:05Z"
_FORMS = "in nanoseconds since the epoch or ISO 8601 (UTC unless a zone is given)"
_MOST_STARS = 6


def parse_ms(given: str) -> int:
    """Nanoseconds from milliseconds with a fraction."""
    if not re.fullmatch(r"[0-9]{1,13}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", given):
        raise UsageError(f"not a time: {given!r:.80}", hint=_TIME_HINT)
    milliseconds = Decimal(given)  # a double would be a fifth of a microsecond off
    if milliseconds > LATEST_MS:  # the declared maximum, which a fraction may exceed
        raise UsageError(f"not a time: {given!r:.80} is after 2262", hint=_TIME_HINT)
    return round(milliseconds * MILLISECOND_NS)


def parse_moment(given: str) -> int:
    """Nanoseconds since the epoch, or ISO 8601; without a zone it is UTC."""
    if re.fullmatch(r"[0-9]{1,19}", given):
        return checked_ns(int(given), given, _TIME_HINT)
    return parse_date_time_ns(given, _TIME_HINT)


def check_bounded(name: str, given: str) -> str:
    """Return a filter's text if it makes sense, and cannot take for ever."""
    if name in ("comm", "cgroup") and given.count("*") > _MOST_STARS:
        raise UsageError("too many `*`", hint=f"give at most {_MOST_STARS}")
    return check_filter(name, given)


def _time(name: str, meaning: str) -> tuple[Parameter, Parameter]:
    return (
        number(f"{name}_ms", f"{meaning}, in milliseconds since the epoch", parse_ms, 0, LATEST_MS),
        text(
            name,
            f"{meaning}, in nanoseconds since the epoch or ISO 8601 (UTC without a zone)",
            40,
            parse_moment,
        ),
    )


FROM, TO = _time("from", "start of the window"), _time("to", "end of the window")
WINDOW = (*FROM, *TO)
AT = (*_time("at", "the moment"),)
BASE = (*_time("base_from", "start of the window to compare with"),
        *_time("base_to", "its end"))  # fmt: skip


def _filter(option: FilterOption) -> Parameter:
    if option.name == "mode":
        return choice(option.name, option.help, SAMPLE_MODES)
    return text(option.name, option.help, option.longest, partial(check_bounded, option.name))


FILTERS = tuple(_filter(option) for option in FILTER_OPTIONS)
REVISION = text("revision", "ignored: tells caches apart", 64)
