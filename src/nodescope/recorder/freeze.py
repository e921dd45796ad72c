"""Keeps the minutes around serious events: five before, five after.

What lies before is kept although it was recorded before anybody knew. Ranges
that overlap become one, up to half an hour; a storm that lasts longer goes on in
the next. At most 24 ranges are the recorder's own, the oldest give way, and so they do
where they take more than half of what retention allows (`archive.retention`); those of
people (`nodescope freeze`) are never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from nodescope.archive.retention import (
    AUTOMATIC,
    Frozen,
    read_frozen,
    unfreeze,
    write_frozen,
)
from nodescope.clock import ClockPair
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_duration
from nodescope.records.event import Event
from nodescope.records.event_details import FrozenDetails

AROUND_NS = 300 * SECOND_NS
LONGEST_NS = 30 * MINUTE_NS
MOST = 24
_SLACK_NS = 60 * SECOND_NS  # a range that grows is written once a minute, not with each event


class Freezing:
    """The recorder's own frozen ranges of one archive."""

    def __init__(self, root: Path, started_ns: int, recorded_to_ns: int | None) -> None:
        """`recorded_to_ns` is when the run before ended; None if there was none in this boot."""
        self._root = root
        self._started_ns = started_ns
        self._recorded_to_ns = recorded_to_ns

    def freeze(self, events: Iterable[Event], now: ClockPair) -> list[Event]:
        """Keep what surrounds the events; returns what is to be told of it.

        History, which the kernel's log and others may still tell, is let be: what
        surrounded it was frozen then, or nobody recorded it.
        """
        told: list[Event] = []
        own: list[Frozen] | None = None
        for event in events:
            if self._is_history(event, now):
                continue
            if own is None:
                own = [each for each in read_frozen(self._root) if each.automatic]
            moment = event.time_ns + now.wall_ns - now.monotonic_ns
            if not self._extend(own, moment):
                frozen = self._begin(own, event, moment, now.wall_ns)
                told.append(_tell(frozen, event, now))
        return told

    def _is_history(self, event: Event, now: ClockPair) -> bool:
        if now.monotonic_ns - event.time_ns > 2 * AROUND_NS:
            return True
        if event.time_ns >= self._started_ns:
            return False
        # A recorder that was started again finds what the one before had recorded until then.
        before = self._recorded_to_ns
        return before is None or before < event.time_ns - AROUND_NS

    def _extend(self, own: list[Frozen], moment_ns: int) -> bool:
        """Extend a frozen range to the moment, and return whether one holds it now."""
        start, end = moment_ns - AROUND_NS, moment_ns + AROUND_NS
        for at, each in enumerate(own):
            if each.from_ns <= start and end <= each.to_ns:
                return True
            grown = replace(
                each,
                from_ns=min(each.from_ns, start),
                to_ns=max(each.to_ns, end + _SLACK_NS) if end > each.to_ns else each.to_ns,
            )
            if each.overlaps(start, end) and grown.to_ns - grown.from_ns <= LONGEST_NS:
                write_frozen(self._root, grown)
                own[at] = grown
                return True
        return False

    def _begin(self, own: list[Frozen], event: Event, moment_ns: int, wall_ns: int) -> Frozen:
        numbers = (each.id.removeprefix(AUTOMATIC) for each in own)
        number = 1 + max((int(each) for each in numbers if each.isdecimal()), default=0)
        frozen = Frozen(
            f"{AUTOMATIC}{number:04d}",
            moment_ns - AROUND_NS,
            moment_ns + AROUND_NS,
            f"{event.kind} on {event.subject}: {event.message}",
            wall_ns,
        )
        write_frozen(self._root, frozen)
        own.append(frozen)
        own.sort(key=lambda each: each.created_ns)
        while len(own) > MOST:
            unfreeze(self._root, own.pop(0).id)
        return frozen


def _tell(frozen: Frozen, event: Event, now: ClockPair) -> Event:
    return Event(
        now.monotonic_ns,
        "frozen",
        frozen.id,
        f"{format_duration(AROUND_NS)} before and after {event.kind} on {event.subject} are kept "
        "beyond retention; more, if more follows",
        details=FrozenDetails(
            kind=event.kind,
            subject=event.subject,
            from_ns=frozen.from_ns,
            to_ns=frozen.to_ns,
        ),
    )
