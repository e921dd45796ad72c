"""Per-core tables as text: `sar -P ALL 1`, `sar -u ALL -P ALL`, `mpstat -P ALL 1`.

    Linux 6.1.0 (node-7)    11/16/26    _x86_64_    (96 CPU)

    03:08:22 PM     CPU     %user     %nice   %system   %iowait    %steal     %idle
    03:08:23 PM       0      1.00      0.00     99.00      0.00      0.00      0.00

Columns go by their names, the clock has 24 or 12 hours, decimals a point or a
comma, the date is as the locale writes it (month first where both would do, as
in C). Times are local, without a zone; they are taken as this machine's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nodescope.exchange.core_times.locale_times import parse_clock, parse_date
from nodescope.exchange.core_times.shares import MAX_CPU, Integrator, ShareClock, shares_of
from nodescope.exchange.import_formats import ImportFormat, Progress
from nodescope.exchange.importer import detects, import_shares, peek_readings
from nodescope.ingest.clean_text import clean_text, split_lines
from nodescope.ingest.parsed import Notes, Reading
from nodescope.ingest.sink import ImportReport, Sink

_BANNER = re.compile(
    r"Linux (\S{1,255}) \(([^)]{0,255})\)\s+(\S+(?: \S+)??)\s+_?\w+_?\s+\((\d{1,5}) CPU\)"
)
_NUMBER = re.compile(r"\d{1,4}(?:[.,]\d{1,6})?$")


def looks_like_sar(head: bytes) -> bool:
    """Return whether a file begins like sar's text."""
    lines = head[:16384].decode("utf-8", "replace").splitlines()[:40]
    return any(_BANNER.match(line) for line in lines) and any(_columns(line) for line in lines)


def parse_sar(blocks: Iterable[bytes], notes: Notes) -> Iterator[list[Reading]]:
    """Readings of all cores, interval by interval, on the wall clock."""
    clock: ShareClock | None = None
    integrator = Integrator(notes)
    columns: list[str] | None = None
    second: int | None = None
    shares: dict[int, tuple[float, ...]] = {}
    for offset, raw, whole in split_lines(blocks):
        if not whole:
            notes.stop(offset, "it ends in the middle of a line")
            break
        line = raw.decode("utf-8", "replace")
        if banner := _BANNER.match(line, 0, 1024):
            date = parse_date(banner[3])
            clock = clock if date is None else ShareClock(date)
            notes.facts |= {"release": clean_text(banner[1]), "nodename": clean_text(banner[2])}
            continue
        if named := _columns(line):
            columns = named
            continue
        row = _row(line, columns) if columns else None
        if row is None:
            if line.strip() and not line.startswith(("Average", "Summary")):
                notes.skipped["lines of other tables"] += 1
            columns = columns if line.strip() else None  # a blank line ends a table
            continue
        if clock is None:
            notes.stop(offset, "its first line does not say the date")
            break
        if row[0] != second and second is not None:
            yield _finish(clock, integrator, second, shares)
            shares = {}
        second = row[0]
        if row[1] is not None:
            shares[row[1]] = row[2]
    if clock is not None and second is not None:
        yield _finish(clock, integrator, second, shares)
    yield integrator.finish()


def _finish(
    clock: ShareClock, integrator: Integrator, second: int, shares: dict[int, tuple[float, ...]]
) -> list[Reading]:
    time_ns = clock.wall_ns(second)
    return integrator.add(time_ns, shares) if shares and time_ns is not None else []


def _columns(line: str) -> list[str] | None:
    """The names of the columns after `CPU`, if this is such a table's heading."""
    fields = line.split()
    if "CPU" not in fields[:4]:
        return None
    names = fields[fields.index("CPU") + 1 :]
    if "%idle" not in names or not all(name.startswith("%") for name in names):
        return None
    return [name[1:] for name in names]


def _row(line: str, columns: list[str] | None) -> tuple[int, int | None, tuple[float, ...]] | None:
    """Second of the day, core (None for all) and shares."""
    clock = parse_clock(line)
    if clock is None or columns is None:
        return None
    cpu, *values = line[clock[1] :].split() or [""]
    if len(values) != len(columns) or not all(_NUMBER.match(value) for value in values):
        return None
    if not (cpu == "all" or (cpu.isascii() and cpu.isdigit() and len(cpu) <= 4)):
        return None
    numbers = {
        name: float(value.replace(",", ".")) for name, value in zip(columns, values, strict=True)
    }
    core = int(cpu) if cpu != "all" and int(cpu) <= MAX_CPU else None
    return clock[0], core, shares_of(numbers)


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    return import_shares(path, sink, progress, FORMAT.name, parse_sar)


FORMAT = ImportFormat("sar text", detects(looks_like_sar), peek_readings(parse_sar), _import)
