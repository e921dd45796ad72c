"""From percentages per interval, which `mpstat` and `sar` print, to counters.

The `cores` table holds counters as `/proc/stat` has them, in ticks of 10 ms; so
a share of an interval becomes ticks, added up. The counters start at 0 where
the file starts: their differences mean something, their levels do not.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from nodescope.ingest.parsed import Notes, Reading
from nodescope.quantities import SECOND_NS
from nodescope.records.recorder_tables import CORE_STATES
from nodescope.wall_time import compose_wall_ns

MAX_CPU = 8191
MAX_INTERVAL_S = 86_400
TICKS_PER_SECOND = 100

# What the tools call a state → ours. Their usr and nice leave out guests, ours
# include them, as the kernel's do.
_STATE_OF = {
    "usr": "user", "user": "user", "nice": "nice", "sys": "system", "system": "system",
    "iowait": "iowait", "irq": "irq", "soft": "softirq", "softirq": "softirq",
    "steal": "steal", "guest": "guest", "gnice": "guest_nice", "idle": "idle",
}  # fmt: skip


def shares_of(percentages: Mapping[str, float]) -> tuple[float, ...]:
    """Shares in `CORE_STATES` order from percentages by the tools' names."""
    shares = dict.fromkeys(CORE_STATES, 0.0)
    for name, percent in percentages.items():
        state = _STATE_OF.get(name)
        if state is not None and 0 <= percent <= 1e6:  # not a number fails, too
            shares[state] += min(percent, 100.0) / 100.0
    # sar's plain `-u` has %user with guests in it, and no %guest.
    if "usr" in percentages:
        shares["user"] += shares["guest"]
        shares["nice"] += shares["guest_nice"]
    return tuple(shares.values())


@dataclass(slots=True)
class ShareClock:
    """Times of day, without a date, on the wall: midnight is where they jump back."""

    day: tuple[int, int, int]  # year, month, day
    last_s: int | None = None
    days: int = 0

    def wall_ns(self, second_of_day: int) -> int | None:
        """The moment, in this machine's zone."""
        if self.last_s is not None and second_of_day < self.last_s - 43_200:
            self.days += 1
        self.last_s = second_of_day
        midnight = compose_wall_ns(*self.day, 0, 0, 0, 0)
        if midnight is None:
            return None
        # The calendar date n days on, then local time on that date.
        date = time.gmtime(midnight // SECOND_NS + self.days * 86_400)
        hour, rest = divmod(second_of_day, 3600)
        return compose_wall_ns(
            date.tm_year, date.tm_mon, date.tm_mday, hour, rest // 60, rest % 60, None
        )


@dataclass(slots=True)
class Integrator:
    """Adds up shares, interval by interval; the first waits for the second to know its length."""

    notes: Notes
    _totals: dict[int, list[float]] = field(default_factory=dict)
    _held: list[tuple[int, dict[int, tuple[float, ...]]]] = field(default_factory=list)
    _last_ns: int | None = None
    _interval_ns: int = SECOND_NS

    def add(self, time_ns: int, shares: dict[int, tuple[float, ...]]) -> list[Reading]:
        """The shares of all cores over the interval that ended then."""
        if self._last_ns is None:
            self._held.append((time_ns, shares))
            if len(self._held) < 4:
                return []
            return self._release()
        return self._advance(time_ns, shares)

    def finish(self) -> list[Reading]:
        """Return the readings that were still pending at the end of a short file."""
        return self._release() if self._held else []

    def _release(self) -> list[Reading]:
        held, self._held = self._held, []
        times = [time_ns for time_ns, _ in held]
        steps = [b - a for a, b in pairwise(times) if b > a]
        self._interval_ns = int(median(steps)) if steps else SECOND_NS
        self._last_ns = times[0] - self._interval_ns
        readings: list[Reading] = []
        for time_ns, shares in held:
            readings += self._advance(time_ns, shares)
        return readings

    def _advance(self, time_ns: int, shares: dict[int, tuple[float, ...]]) -> list[Reading]:
        assert self._last_ns is not None
        elapsed = time_ns - self._last_ns
        if not 0 < elapsed <= MAX_INTERVAL_S * SECOND_NS:
            self.notes.skipped["intervals out of order"] += 1
            if elapsed > 0:
                self._last_ns = time_ns
            return []
        readings = []
        for cpu, share in shares.items():
            totals = self._totals.get(cpu)
            if totals is None:
                totals = self._totals[cpu] = [0.0] * len(CORE_STATES)
                readings.append(Reading(self._last_ns, cpu, (0,) * len(CORE_STATES)))
            for state, part in enumerate(share):
                totals[state] += part * elapsed / SECOND_NS * TICKS_PER_SECOND
            readings.append(Reading(time_ns, cpu, tuple(round(total) for total in totals)))
        self._last_ns = time_ns
        return readings
