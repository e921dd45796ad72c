"""The state of the node that makes a mechanism costly: zombies, or want of memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, RuledOut
from nodescope.diagnosis.rules.suspects import THROTTLING, suspect_of_counter
from nodescope.judgement.zombie_reading import ZombieReading
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupRow, MemoryRow
from nodescope.records.sample_filter import SampleFilter
from nodescope.records.view import Moment, View, around

FEW_ZOMBIES = 300  # every machine has some; nobody pays for them
OLD_NS = 60 * SECOND_NS  # a count that is older is not of that moment, and says so
BEFORE_S, NEAR_S, AFTER_S = 900, 60, 15
LEAST_BEFORE_S = 3  # of a baseline; the statement says how long it was
NO_SHARE = 0.3  # of a core's samples: with less a suspect did not hold it
RISE = 2.0  # a rate that did not double did not change


@dataclass(frozen=True, slots=True)
class Rise:
    """How fast a counter of /proc/vmstat grew in some seconds, and before them."""

    name: str
    near: float  # per second
    before: float | None  # None: nothing to compare with
    before_ns: int  # how long that was


def zombie_link(zombies: ZombieReading, at_ns: int) -> Link:
    """The zombies as a link; its strength grows with what walking them costs."""
    dying, age_ns = zombies.likely_dying or 0, at_ns - (zombies.read_ns or at_ns)
    counted = f", as counted {format_duration(age_ns)} before" if age_ns > OLD_NS else ""
    return Link(
        "state",
        f"{dying:,} zombie memory cgroups",
        f"the kernel tracks {zombies.tracked or 0:,} memory cgroups, of which "
        f"{zombies.visible or 0:,} exist: {dying:,} were removed and are still walked{counted}",
        min(5.5, 1.0 + math.log(max(1.0, dying / FEW_ZOMBIES)) * 1.5),
        View("zombies", Moment(at_ns)),
        "a walk that stays as slow after they were freed",
    )


def pressure_link(case: Case, at_ns: int) -> Link | None:
    """Want of memory near the moment, if there was any."""
    near = Window(at_ns - NEAR_S * SECOND_NS, at_ns + 5 * SECOND_NS)
    stalls = {
        name: rate
        for name, listed in _read_counters(case, near).items()
        if name.startswith(("allocstall", "pgscan_direct")) and (rate := _rate(listed))
    }
    hits = _limit_hits(case, at_ns)
    if not stalls and not hits:
        return None
    if hits:
        path, count, over_ns = hits[0]
        times = f"{count:,} times in {format_duration(over_ns)}"
        statement = f"{path} ran into its memory limit {times}"
        subject, strength = path, 3.0
    else:
        name, rate = max(stalls.items(), key=lambda each: each[1])
        statement = f"{name} grew by {rate:,.0f} a second"
        subject, strength = "memory of the node", 2.0
    return Link(
        "state", subject, statement, strength,
        View("top", around(at_ns), SampleFilter(frame="try_to_free"), by="cgroup"),
        "no reclaim of that cgroup at that time",
    )  # fmt: skip


def _limit_hits(case: Case, at_ns: int) -> list[tuple[str, int, int]]:
    """Return cgroups that ran into their limit: how often, and in how much time; most first."""
    grown = _grown(case, at_ns, lambda row: row.memory_limit_hits)
    return sorted(grown, key=lambda each: (-each[1], each[0]))


def _grown(
    case: Case, at_ns: int, value: Callable[[CgroupRow], int | None]
) -> list[tuple[str, int, int]]:
    """Return the cgroups of which a count grew near a moment: by how much, in how much time."""
    window = Window(at_ns - NEAR_S * SECOND_NS, at_ns + 10 * SECOND_NS)
    read: dict[str, Readings] = {}
    for row in case.rows(CgroupRow, window):
        count = value(row)
        if count is not None:
            read.setdefault(row.cgroup, []).append((row.time_ns, count))
    ends = {path: (listed[0], listed[-1]) for path, listed in read.items()}
    return [
        (path, last[1] - first[1], last[0] - first[0])
        for path, (first, last) in ends.items()
        if last[1] > first[1]
    ]


Readings = list[tuple[int, int]]  # when, and the value, in the order of time


def read_rises(case: Case, span: Window) -> list[Rise]:
    """Counters of vmstat: their rate in some seconds and in the minutes before them."""
    wide = Window(span.from_ns - BEFORE_S * SECOND_NS, span.to_ns + AFTER_S * SECOND_NS)
    found = []
    for name, listed in _read_counters(case, wide).items():
        # Readings are seconds apart: those that enclose the span, and those before it.
        first = max(sum(time_ns <= span.from_ns for time_ns, _ in listed) - 1, 0)
        last = sum(time_ns < span.to_ns for time_ns, _ in listed)
        near = _rate(listed[first : last + 1])
        if near is not None:
            before_ns = listed[first][0] - listed[0][0]
            enough = before_ns >= LEAST_BEFORE_S * SECOND_NS
            before = _rate(listed[: first + 1]) if enough else None
            found.append(Rise(name, near, before, before_ns))
    return found


def _read_counters(case: Case, window: Window) -> dict[str, Readings]:
    """Readings by counter; gauges of meminfo are capitalised."""
    found: dict[str, Readings] = {}
    for row in case.rows(MemoryRow, window):
        if not row.name[0].isupper():
            found.setdefault(row.name, []).append((row.time_ns, row.value))
    return {name: sorted(listed) for name, listed in found.items()}


def _rate(listed: Readings) -> float | None:
    """How fast it grew, per second; None if that cannot be said."""
    if len(listed) < 2:
        return None
    (start, first), (end, last) = listed[0], listed[-1]
    return (last - first) * SECOND_NS / (end - start) if end > start and last >= first else None


def rule_out_rises(case: Case, span: Window, share_of: dict[str, float]) -> list[RuledOut]:
    """Counters that people suspect, with why they are not it.

    `share_of` says how much of the pegged core's kernel samples is of each.
    """
    found: dict[str, RuledOut] = {}
    sampled = case.absence("samples", span)
    for rise in read_rises(case, span):
        label = suspect_of_counter(rise.name)
        if label is None or label in found or not (rise.near or rise.before):
            continue
        share = share_of.get(label, 0.0)
        if share < NO_SHARE:
            found[label] = RuledOut(label, _why_not(label, rise, share), absent=sampled)
    return list(found.values())


def _why_not(label: str, rise: Rise, share: float) -> str:
    some = f"only {share:.0%}" if share >= 0.005 else "none"
    little = f"{some} of the core's kernel samples is of it"
    if rise.before is None:
        return f"{label}: not compared, as {_too_little(rise)}; ruled out because {little}"
    against = f"against the {format_duration(rise.before_ns)} before"
    if rise.before == 0:
        return f"{label} began, {rise.near:,.1f} a second {against}; ruled out because {little}"
    ratio = rise.near / rise.before
    if ratio < 1.05:
        return f"{label} did not rise {against}; ruled out because that is no more than usual"
    reason = little if ratio >= RISE else f"that is not even double, and {little}"
    return f"{label} rose {ratio:.1f}× {against}; ruled out because {reason}"


def _too_little(rise: Rise) -> str:
    """Return why there is nothing to compare with: a rate takes two readings some time apart."""
    if not rise.before_ns:
        return "its counter was not read twice before"
    return f"its counter was read for only {format_duration(rise.before_ns)} before"


def rule_out_throttling(case: Case, at_ns: int) -> list[RuledOut]:
    """Cgroups that were throttled near the moment: a throttled task runs less, not more."""
    grown = _grown(case, at_ns, lambda row: row.throttled_us or None)
    if not grown:
        return []
    path, waited_us, over_ns = max(grown, key=lambda each: each[1])
    return [
        RuledOut(
            THROTTLING,
            f"{path} was throttled for {waited_us / 1e6:.1f} s in {format_duration(over_ns)}; "
            "ruled out because throttling takes a core away, it does not hold one in the kernel",
        )
    ]
