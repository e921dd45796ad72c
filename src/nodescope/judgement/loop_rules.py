"""Does it loop? One vocabulary and one set of thresholds, for whoever asks.

A loop is something that ends and is started again: a unit, a container, or a child inside a
unit that itself runs on. Three times are a loop: one end may be a bad start, a second one a
repair that did not hold. Within which time they must lie depends on who starts it again;
the limits below say why. Facts come from a live node or from a recording, the decisions are
the same:

* a unit, by its restarts (`decide_unit`), or by what systemd counts (`decide_by_counter`);
* a container, by its starts under one name (`decide_container`), or, in a pod, by the
  kubelet's restarts in place (`decide_pod`);
* a child inside a unit, by its failed ends (`decide_child`);
* anything that ended again and again before a moment (`decide_ends`): what leaves something
  behind each time need not fail, nor be fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS

LoopKind = Literal["unit", "container", "child"]

LEAST_TIMES = 3
LEAST_LOOKS = 2  # that must have seen it: one build that fails many times at once is no loop
UNIT_WITHIN_NS = 10 * MINUTE_NS  # systemd starts a unit again after seconds, rarely after minutes
CONTAINER_WITHIN_NS = 30 * MINUTE_NS  # the kubelet waits up to five minutes between restarts
STEADY_NS = 10 * MINUTE_NS  # after a run this long the kubelet begins to count anew
LINES_WITHIN_NS = HOUR_NS  # a supervisor that logs an end may back off longest
ENDS_WITHIN_NS = HOUR_NS  # before a moment: what leaves zombies behind may do so rarely
ENDS_AFTER_NS = MINUTE_NS  # after it: what goes on there shows that it is a loop
JUST_STARTED_NS = MINUTE_NS  # a unit whose counter is high and that runs for less, loops
LONG_RUN_NS = MINUTE_NS  # a run this long that ends well is no part of a loop
LIVED_NS = 2 * SECOND_NS  # a child that lived so long was no passing helper: two ends are enough
TIMES_WELL = 6  # starts of runs that all ended well: a job that is run again is no loop yet
FAILURES = 2  # failed runs among a container's starts
OVER_AFTER_NS = 10 * MINUTE_NS  # a loop that rested so long, and three of its rounds, is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Something that ends and is started again; times are on the clock of the facts."""

    kind: LoopKind
    name: str
    times: int  # that it ended or was started again
    since_ns: int | None = None  # the first of them; None: only counted
    last_ns: int | None = None
    period_ns: int | None = None  # from one time to the next
    failures: int | None = None  # of the runs; None: not known
    ends: tuple[str, ...] = ()  # how they ended: `exit code 1`, `signal 9`
    inside: str | None = None  # the unit that runs on and hides it

    @property
    def hidden(self) -> bool:
        """Return whether systemd sees nothing of the loop."""
        return self.inside is not None

    def lasts(self, now_ns: int) -> bool:
        """Decide whether it goes on at that time, as far as can be known."""
        if self.last_ns is None:
            return True
        return now_ns - self.last_ns < max(3 * (self.period_ns or 0), OVER_AFTER_NS)


# -- decisions -------------------------------------------------------------------


def decide_unit(restarted_ns: Sequence[int], short_runs: Sequence[bool], now_ns: int) -> list[int]:
    """Return the restarts that make a unit's loop; none if it does not loop.

    Three within ten minutes, and none of the latest runs was long and ended well.
    """
    recent = [time for time in restarted_ns if time > now_ns - UNIT_WITHIN_NS]
    if len(recent) < LEAST_TIMES or not all(short_runs[-LEAST_TIMES:]):
        return []
    return recent


def decide_by_counter(restarts: int | None, *, waits: bool, just_started: bool) -> bool:
    """Decide by a manager's own counter, where nothing was seen to happen."""
    return (restarts or 0) >= LEAST_TIMES and (waits or just_started)


def decide_container(starts: int, *, names: int | None, restarted: bool, failures: int) -> bool:
    """Decide whether starts within half an hour are a container's loop.

    `names` is of containers that only their image ties together: each must have its own.
    """
    if starts < LEAST_TIMES or (names is not None and names < LEAST_TIMES):
        return False
    return restarted or failures >= FAILURES or starts >= TIMES_WELL


def decide_pod(failures: int, again: int, counted: int | None, *, short: bool) -> bool:
    """Decide whether the kubelet restarts a container of a pod again and again.

    `failures` and `again` are the failed ends and the restarts in place that were seen within
    half an hour, `counted` the restarts since the pod was made. The kubelet waits longer each
    time, up to five minutes: a recording may hold one restart of a loop. `short` says that a
    run ended before it had lasted long enough for the kubelet to forget the earlier ones.
    """
    if again >= LEAST_TIMES - 1 or (failures >= FAILURES and again > 0):
        return True
    return short and failures > 0 and (counted or 0) >= LEAST_TIMES


def decide_child(lived_ns: Sequence[int]) -> bool:
    """Decide whether failed ends of one command are a loop, by how long each run lasted."""
    lived = len(lived_ns) > 1 and all(each >= LIVED_NS for each in lived_ns)
    return lived or len(lived_ns) >= LEAST_TIMES


def decide_ends(before: int, also_after: int) -> bool:
    """Decide whether ends around a moment are a loop: what began after it made nothing by then."""
    return before > 0 and before + also_after >= LEAST_TIMES


def is_often(times: int, looks: int = LEAST_LOOKS) -> bool:
    """Decide whether something was seen often enough, and at more than one look."""
    return times >= LEAST_TIMES and looks >= LEAST_LOOKS


# -- figures ---------------------------------------------------------------------


def mean_period_ns(times_ns: Sequence[int]) -> int | None:
    """Return the mean time from one to the next; None from fewer than two."""
    if len(times_ns) < 2:
        return None
    return (max(times_ns) - min(times_ns)) // (len(times_ns) - 1)


def middle_period_ns(times_ns: Sequence[int]) -> int | None:
    """Return the middle one of the times from one to the next: one long rest does not move it."""
    gaps = sorted(later - earlier for earlier, later in pairwise(sorted(times_ns)))
    return gaps[len(gaps) // 2] if gaps else None


def describe_end(code: int | str | None, status: int | None = None) -> str | None:
    """Return how a run ended in words: of a process (`exited`, 1) or by an exit code alone."""
    if code is None:
        return None
    if isinstance(code, int):
        return f"exit code {code}"
    return f"exit code {status}" if code == "exited" else f"signal {status}"
