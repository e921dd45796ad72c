"""`mpstat -P ALL 1 -o JSON` (sysstat): the share of each core's time in each state.

One document per run: `{"sysstat": {"hosts": [{…, "date": …, "statistics": [ … ]}]}}`,
with one object per interval in `statistics`. They are taken one by one, so that
a day of it costs no memory, and a run that was killed gives all it wrote.

mpstat writes local times without a zone; they are taken as this machine's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nodescope.exchange.core_times.locale_times import parse_clock, parse_date
from nodescope.exchange.core_times.shares import MAX_CPU, Integrator, ShareClock, shares_of
from nodescope.exchange.import_formats import ImportFormat, Progress
from nodescope.exchange.importer import detects, import_shares, peek_readings
from nodescope.ingest.clean_text import clean_text
from nodescope.ingest.parsed import Notes, Reading
from nodescope.ingest.sink import ImportReport, Sink

MAX_OBJECT_CHARS = 16 << 20  # 8192 cores are 1.5 MB
_HEADER = re.compile(
    r'"(nodename|release|date|number-of-cpus)"\s*:\s*(?:"([^"\\]{0,255})"|(\d{1,6}))'
)
_STATISTICS = re.compile(r'"statistics"\s*:\s*\[')
# A locale with a decimal comma makes mpstat write what is not JSON.
_DECIMAL_COMMA = re.compile(r'(":\s*\d{1,3}),(\d\d)(?=\s*[,}])')
_SEPARATORS = " \t\r\n,"


def looks_like_mpstat(head: bytes) -> bool:
    """Return whether a file begins like mpstat's JSON."""
    return head.lstrip()[:1] == b"{" and b'"sysstat"' in head[:4096] and b'"hosts"' in head[:4096]


def parse_mpstat(blocks: Iterable[bytes], notes: Notes) -> Iterator[list[Reading]]:
    """Readings of all cores, interval by interval, on the wall clock."""
    reader = _Objects(blocks, notes)
    header = reader.skip_past(_STATISTICS)
    if header is None:
        notes.stop(0, "it has no statistics")
        return
    facts = {match[1]: match[2] or match[3] or "" for match in _HEADER.finditer(header)}
    notes.facts |= {name: clean_text(value, 255) for name, value in facts.items()}
    date = parse_date(facts.get("date", ""))
    if date is None:
        notes.stop(0, f"a date was expected, not {facts.get('date', '')!r:.40}")
        return
    clock, integrator = ShareClock(date), Integrator(notes)
    for interval in reader.objects():
        found = _interval(interval, clock)
        if found is None:
            notes.skipped["intervals without time or cores"] += 1
            continue
        yield integrator.add(*found)
    yield integrator.finish()


def _interval(content: Any, clock: ShareClock) -> tuple[int, dict[int, tuple[float, ...]]] | None:
    if not isinstance(content, dict) or not isinstance(content.get("timestamp"), str):
        return None
    second = parse_clock(content["timestamp"].strip())
    loads = content.get("cpu-load")
    if second is None or not isinstance(loads, list):
        return None
    shares: dict[int, tuple[float, ...]] = {}
    for load in loads[: MAX_CPU + 2]:
        name = load.get("cpu") if isinstance(load, dict) else None
        if not isinstance(name, str) or not name.isascii() or not name.isdigit() or len(name) > 4:
            continue  # "all", which is the sum
        numbers = {
            key: float(value)
            for key, value in load.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e6
        }
        if numbers and int(name) <= MAX_CPU:
            shares[int(name)] = shares_of(numbers)
    time_ns = clock.wall_ns(second[0])
    return (time_ns, shares) if shares and time_ns is not None else None


class _Objects:
    """The objects of a JSON array in a stream, each decoded when it is whole."""

    def __init__(self, blocks: Iterable[bytes], notes: Notes) -> None:
        self._blocks = iter(blocks)
        self._notes = notes
        self._text = ""
        self._done = 0  # characters let go; what mpstat writes is ASCII, so bytes

    def _more(self) -> bool:
        block = next(self._blocks, None)
        if block is None:
            return False
        self._text += block.decode("ascii", "replace")
        return True

    def _drop(self, count: int) -> None:
        self._text = self._text[count:]
        self._done += count

    def skip_past(self, pattern: re.Pattern[str]) -> str | None:
        """Return the text before the pattern; None if it does not come."""
        while (match := pattern.search(self._text)) is None:
            if len(self._text) > MAX_OBJECT_CHARS or not self._more():
                return None
        before = self._text[: match.start()]
        self._drop(match.end())
        return before

    def objects(self) -> Iterator[Any]:
        """Each object, until the array ends or what follows cannot be read."""
        decoder = json.JSONDecoder()
        position = 0
        while True:
            while position < len(self._text) and self._text[position] in _SEPARATORS:
                position += 1
            if position == len(self._text):
                self._drop(position)
                position = 0
                if not self._more():
                    return self._notes.stop(self._done, "it ends before its array does")
                continue
            if self._text[position] == "]":
                self._notes.offset = self._done + position + 1
                return None
            try:
                content, position = decoder.raw_decode(self._text, position)
            except (ValueError, RecursionError) as error:
                fixed = _DECIMAL_COMMA.sub(r"\1.\2", self._text[position:])
                if fixed != self._text[position:]:
                    self._drop(position)
                    self._text, position = fixed, 0
                    continue
                if len(self._text) - position > MAX_OBJECT_CHARS or not self._more():
                    where = self._done + position
                    reason = getattr(error, "msg", "too deeply nested")
                    return self._notes.stop(where, f"not a whole object: {reason}")
                continue
            yield content
            if position > 1 << 20:
                self._drop(position)
                position = 0


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    return import_shares(path, sink, progress, FORMAT.name, parse_mpstat)


FORMAT = ImportFormat(
    "mpstat JSON", detects(looks_like_mpstat), peek_readings(parse_mpstat), _import
)
