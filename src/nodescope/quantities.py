"""Durations, sizes and CPU lists as people write them, in and out."""

from __future__ import annotations

import re

from nodescope.errors import UsageError

MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS

_DURATION_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": MILLISECOND_NS,
    "s": SECOND_NS,
    "m": MINUTE_NS,
    "min": MINUTE_NS,
    "h": HOUR_NS,
    "d": DAY_NS,
}
_SIZE_UNITS = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1000,
    "m": 1000**2,
    "mb": 1000**2,
    "g": 1000**3,
    "gb": 1000**3,
    "t": 1000**4,
    "tb": 1000**4,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zµ]*)", re.IGNORECASE)
MAX_CPU = 8191  # CONFIG_NR_CPUS tops out at 8192 on x86


def parse_duration_ns(text: str) -> int:
    """`30s`, `100ms`, `1h30m`; a bare number is seconds."""
    total: int | float = 0
    position, stripped = 0, text.strip()
    while match := _PART.match(stripped, position):
        unit = match[2].lower() or "s"
        if unit not in _DURATION_UNITS_NS:
            break
        exact = match[1].isdecimal() and len(match[1]) < 20
        total += (int(match[1]) if exact else float(match[1])) * _DURATION_UNITS_NS[unit]
        position = match.end()
        while position < len(stripped) and stripped[position] == " ":
            position += 1
    if not stripped or position != len(stripped) or total > 2**63 - 1:
        raise UsageError(f"not a duration: {text!r}", hint="write it like 30s, 100ms or 1h30m")
    return round(total)


def parse_size_bytes(text: str) -> int:
    """`4GiB`, `512MB`, `1000`; a bare number is bytes."""
    match = _PART.fullmatch(text.strip())
    if match is None or match[2].lower() not in _SIZE_UNITS:
        raise UsageError(f"not a size: {text!r}", hint="write it like 4GiB, 512MB or 1000000")
    return round(float(match[1]) * _SIZE_UNITS[match[2].lower()])


def parse_cpu_list(text: str) -> list[int]:
    """The kernel's own list format: `0-5,39`; an empty text is no CPU."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last or last > MAX_CPU:
            raise UsageError(f"not a list of CPUs: {text!r}", hint="write it like 0-5,39")
        cpus.update(range(first, last + 1))
    return sorted(cpus)


def _short(number: float) -> str:
    """Three digits that matter, never an exponent."""
    return f"{number:.0f}" if number >= 99.95 else f"{number:.3g}"


def format_duration(nanoseconds: int) -> str:
    """The shortest text that a person reads at a glance: `2h 5m`, `3.2 s`, `15 ms`."""
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", MILLISECOND_NS)):
        if nanoseconds < 999.5 * size:
            return f"{_short(nanoseconds / size)} {unit}"
    seconds = nanoseconds / SECOND_NS
    if seconds < 59.95:
        return f"{_short(seconds)} s"
    minutes, whole = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {whole}s" if whole else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    return f"{hours // 24}d {hours % 24}h"


def format_exact_duration(nanoseconds: int) -> str:
    """Return a duration that `parse_duration_ns` reads back as it was: `90s`, `250ms`."""
    for unit in ("s", "ms"):
        if nanoseconds % _DURATION_UNITS_NS[unit] == 0:
            return f"{nanoseconds // _DURATION_UNITS_NS[unit]}{unit}"
    return f"{nanoseconds}ns"


def format_bytes(count: float) -> str:
    """`812 B`, `1.4 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1023.5:
            return f"{_short(count)} {unit}"
        count /= 1024
    return f"{_short(count)} TiB"


def format_count(number: int, thing: str) -> str:
    """Return `1 gap`, `1,204 gaps`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def format_cpu_list(cpus: list[int]) -> str:
    """The inverse of `parse_cpu_list`."""
    parts: list[str] = []
    ordered = sorted(set(cpus))
    index = 0
    while index < len(ordered):
        end = index
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        first, last = ordered[index], ordered[end]
        parts.append(str(first) if first == last else f"{first}-{last}")
        index = end + 1
    return ",".join(parts)
