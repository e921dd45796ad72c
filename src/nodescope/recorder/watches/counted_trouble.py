"""Events of trouble that a counter shows, where the kernel log is silent.

A counter that rises, or a level that passes its limit, is the event of its kind, unless the log
reports the same: a line may come a moment after the counter was read, so the event is held back
until the log was read once more. A counter that goes on rising is one event, until it rested.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.details import read_details
from nodescope.records.event import Event, details_of_kind
from nodescope.records.event_details import CounterDetails
from nodescope.records.json import JsonObject

_QUIET_NS = 60 * SECOND_NS  # so long a counter must rest before its rise is an event again
_LOGGED_NS = 30 * SECOND_NS  # some things are logged when they begin and counted when they end
_HELD_NS = 2 * SECOND_NS  # the log is read each second


@dataclass(frozen=True, slots=True)
class CounterRise:
    """A counter of trouble that rose between two readings."""

    kind: str
    name: str
    subject: str  # device, cgroup or core; empty for the node
    before: int
    value: int
    since_ns: int  # the reading before


@dataclass(frozen=True, slots=True)
class _HeldEvent:
    """An event that waits for the log to be read."""

    event: Event
    names: tuple[str, ...]
    since_ns: int
    due_ns: int


class CountedTrouble:
    """Follows counters and levels for one observer."""

    def __init__(self, reports: LogReports) -> None:
        self._reports = reports
        self._values: dict[tuple[str, str], tuple[int, int]] = {}  # value, when read
        self._risen_ns: dict[tuple[str, str], int] = {}
        self._names: set[str] = set()  # of counters and kinds
        self._above: set[tuple[str, str]] = set()
        self._held: list[_HeldEvent] = []
        self._round_ns: int | None = None  # when the events of the last round were taken

    def follow(
        self, now_ns: int, kind: str, name: str, subject: str, value: int, *, new: bool = False
    ) -> CounterRise | None:
        """Take a reading; return the rise since the last one, if it begins one.

        `new`: the thing came since the last round, and its counter with it, at zero. One that
        fell began anew.
        """
        key = (name, subject)
        self._names |= {name, kind}
        known = self._values.get(key)
        self._values[key] = (value, now_ns)
        if known is None and not new:
            return None
        born = (0, now_ns if self._round_ns is None else self._round_ns)
        before, since_ns = born if known is None else known
        if value < before:
            before = 0
        if value == before:
            return None
        last = self._risen_ns.get((kind, subject))
        self._risen_ns[kind, subject] = now_ns
        if last is not None and now_ns - last < _QUIET_NS:
            return None
        return CounterRise(kind, name, subject, before, value, since_ns)

    def forget(self, subjects: Iterable[str]) -> None:
        """Forget what is gone."""
        for subject in subjects:
            for name in self._names:
                self._values.pop((name, subject), None)
                self._risen_ns.pop((name, subject), None)

    def passes(self, kind: str, subject: str, *, above: bool, cleared: bool) -> bool:
        """Return whether a level is above its limit and was not before it was last cleared."""
        key = (kind, subject)
        if cleared:
            self._above.discard(key)
        if not above or key in self._above:
            return False
        self._above.add(key)
        return True

    def report_rise(
        self, now_ns: int, rise: CounterRise, details: JsonObject, *, hold: bool = False
    ) -> None:
        """Report a rise, unless the log does; `hold`: nor anybody else in this round."""
        counted: JsonObject = {
            "statistic": rise.name,
            "before": rise.before,
            "value": rise.value,
            "within_s": round((now_ns - rise.since_ns) / SECOND_NS, 1),
        }
        message = f"{rise.name} rose by {rise.value - rise.before}: {self._silence()}"
        names = (rise.subject,) if rise.subject else ()
        self.report(
            now_ns, rise.kind, rise.subject or "kernel", message, {**counted, **details}, names,
            since_ns=rise.since_ns,
            hold=hold,
        )  # fmt: skip

    def report(
        self,
        now_ns: int,
        kind: str,
        subject: str,
        message: str,
        details: JsonObject,
        names: tuple[str, ...] = (),
        *,
        since_ns: int | None = None,
        in_log: bool = True,
        hold: bool = False,
    ) -> None:
        """Report what was found since then, unless the log does; not `in_log`: it never does."""
        declared = details_of_kind(kind)
        if issubclass(declared, CounterDetails):
            details = {"known_from": "counters", **details}
        found = read_details(declared, details)
        event = Event(now_ns, kind, subject, message, details=found)
        since_ns = (now_ns if since_ns is None else since_ns) - _LOGGED_NS
        waits = hold or (in_log and self._reports.is_read)
        due_ns = now_ns + _HELD_NS if waits else now_ns
        self._held.append(_HeldEvent(event, names, since_ns, due_ns))

    def take(self, now_ns: int) -> list[Event]:
        """Return the events that the log had time to report, and did not."""
        self._round_ns = now_ns
        due = [each for each in self._held if each.due_ns <= now_ns]
        self._held = [each for each in self._held if each.due_ns > now_ns]
        return [
            each.event
            for each in due
            if not self._reports.told(each.event.kind, each.names, each.since_ns)
        ]

    def _silence(self) -> str:
        if self._reports.is_read:
            return "counted, and not in the kernel's log"
        return "counted; the kernel's log is not read"
