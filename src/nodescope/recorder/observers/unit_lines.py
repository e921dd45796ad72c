"""Log lines in which running units report exits of what they started.

A supervisor that asks a daemon to run its containers has no children that end: neither
systemd nor the kernel's accounting tells of its loop. Its own lines in the journal do
(`Agent exited with code 1`), and the lines around them say of what: the id of the
container it makes anew, for one. A unit that says so three times, at two looks at the
least, is told of, and every two minutes that it goes on. Its lines are kept with it, the
latest of each kind. Whether that is somebody's loop is not judged here: others log the
ends of what they only watch.

Of kubelet, container runtimes and time services the same journal is read for what they report of
themselves (`ingest.service_events`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from nodescope.ingest.observation import Observation
from nodescope.ingest.service_events import ServiceEvents
from nodescope.ingest.unit_events import unit_lines_event
from nodescope.judgement.loop_rules import is_often
from nodescope.judgement.unit_insides import FOR_OTHERS, tells_of_failure
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.records.event import Event
from nodescope.sources.cgroups.name_pattern import name_pattern
from nodescope.sources.places import Places
from nodescope.sources.systemd.journal import Journal, JournalMessage, Most, Wanted
from nodescope.sources.systemd.service_reports import service_of

_UNIT = "_SYSTEMD_UNIT"
_LINES = 100  # of one unit, at one look
_REPORTS = 500  # of a unit whose reports are read
_LINE = 200  # characters of it that are kept
_KINDS = 8  # of lines that are kept of one unit
_KEPT_US = 1_200_000_000
_AGAIN_NS = 120 * SECOND_NS
_MAX_UNITS = 256


class Lines(Protocol):
    """Who has the lines of units."""

    def take_new(self, wanted: Wanted, most: Most | None = None) -> list[JournalMessage]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Unit:
    """One that logged of a failed end."""

    ends: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=1024))  # time, look
    last: str = ""
    lines: dict[str, str] = field(default_factory=dict)  # by what they have in common
    told_ns: int | None = None

    def hear(self, message: JournalMessage, look: int) -> None:
        text = message.fields.get("MESSAGE", "")[:1000]
        line = text[:_LINE]
        if tells_of_failure(text):
            self.ends.append((message.time_us, look))
            self.last = line
        kind = name_pattern(line)
        self.lines.pop(kind, None)
        self.lines[kind] = line
        if len(self.lines) > _KINDS:
            del self.lines[next(iter(self.lines))]

    def forget(self, before_us: int) -> None:
        while self.ends and self.ends[0][0] < before_us:
            self.ends.popleft()

    @property
    def goes_on(self) -> bool:
        return is_often(len(self.ends), looks=len({look for _, look in self.ends}))


def make(setting: Setting) -> UnitLines:
    """The observer of this node's journal."""
    return UnitLines(setting.places)


def _open(places: Places) -> Lines:
    return Journal.open(places, history=0)


class UnitLines:
    """Follows what services log."""

    interval_ns = 30 * SECOND_NS
    patient = True  # a journal may lie on a slow disk

    def __init__(self, places: Places, opening: Callable[[Places], Lines] = _open) -> None:
        self._places = places
        self._opening = opening
        self._journal: Lines | None = None
        self._units: dict[str, _Unit] = {}
        self._looks = 0
        self._services = ServiceEvents()

    def begin_segment(self) -> None:
        """Nothing is said by segment."""

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def observe(self, now_ns: int) -> Observation:
        """Units that went on logging of ends."""
        if self._journal is None:
            self._journal = self._opening(self._places)
        self._looks += 1
        by_unit: defaultdict[str, list[JournalMessage]] = defaultdict(list)
        for message in self._journal.take_new({_UNIT: _is_read}, _most_lines):
            by_unit[message.fields.get(_UNIT, "")].append(message)
        said = Observation()
        for name, messages in by_unit.items():
            self._take_reports(name, messages, said)
            if _is_followed(name) and self._hear(name, messages):
                said.events += self._tell(now_ns, name)
        said.events += self._services.flush(now_ns)
        self._forget(now_ns // 1000 - _KEPT_US)
        return said

    def _take_reports(self, name: str, messages: list[JournalMessage], said: Observation) -> None:
        for message in messages:
            text = message.fields.get("MESSAGE", "")
            said.events += self._services.take(message.time_us * 1000, name, text) or []

    def _hear(self, name: str, messages: list[JournalMessage]) -> bool:
        """Keep what a unit logged, if it ever logged of an end; whether it did just now."""
        ends = any(tells_of_failure(each.fields.get("MESSAGE", "")[:1000]) for each in messages)
        if not ends and name not in self._units:
            return False
        if name not in self._units and len(self._units) >= _MAX_UNITS:
            return False
        unit = self._units.setdefault(name, _Unit())
        for message in messages:
            unit.hear(message, self._looks)
        return ends

    def _forget(self, before_us: int) -> None:
        for unit in self._units.values():
            unit.forget(before_us)
        self._units = {name: unit for name, unit in self._units.items() if unit.ends}

    def _tell(self, now_ns: int, name: str) -> list[Event]:
        unit = self._units[name]
        unit.forget(now_ns // 1000 - _KEPT_US)
        recent = unit.told_ns is not None and now_ns - unit.told_ns < _AGAIN_NS
        if recent or not unit.goes_on:
            return []
        unit.told_ns = now_ns
        ends_us = [time_us for time_us, _ in unit.ends]
        return [unit_lines_event(now_ns, name, ends_us, unit.last, list(unit.lines.values()))]


def _is_read(unit: str) -> bool:
    return _is_followed(unit) or service_of(unit) is not None


def _most_lines(unit: str) -> int:
    return _LINES if service_of(unit) is None else _REPORTS


def _is_followed(unit: str) -> bool:
    """Services, but for those that run what others want."""
    return unit.endswith(".service") and unit not in FOR_OTHERS
