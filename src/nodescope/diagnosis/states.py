"""The state of the node that makes a mechanism costly: zombies, or want of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nodescope.analysis.window import SECOND_NS, Window
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, RuledOut
from nodescope.diagnosis.showing import around, moment

FEW_ZOMBIES = 300  # every machine has some; nobody pays for them
BEFORE_S, NEAR_S = 900, 60
RISE = 2.0  # a rate that did not double did not change


@dataclass(frozen=True, slots=True)
class Zombies:
    """Memory cgroups at one moment."""

    tracked: int
    visible: int
    dying: int
    at_ns: int

    @property
    def many(self) -> bool:
        return self.dying >= FEW_ZOMBIES


@dataclass(frozen=True, slots=True)
class Rise:
    """How fast a counter of /proc/vmstat grew near the moment and before it."""

    name: str
    near: float  # per second
    before: float

    @property
    def ratio(self) -> float:
        return self.near / self.before if self.before > 0 else math.inf


def read_zombies(case: Case, at_ns: int) -> Zombies | None:
    """How many there were; None if that was not recorded."""
    rows = [row for row in case.state("memory_cgroups", ["version"], at_ns) if row["tracked"]]
    if not rows:
        return None
    row = max(rows, key=lambda row: row["time_ns"])
    dying = row["dying"] if row["dying"] is not None else row["tracked"] - (row["visible"] or 0)
    return Zombies(row["tracked"], row["visible"] or 0, dying, at_ns)


def zombie_link(zombies: Zombies) -> Link:
    """The zombies as a link; its strength grows with what walking them costs."""
    return Link(
        "state",
        f"{zombies.dying:,} zombie memory cgroups",
        f"the kernel tracks {zombies.tracked:,} memory cgroups, of which {zombies.visible:,} "
        f"exist: {zombies.dying:,} were removed and are still walked",
        min(5.5, 1.0 + math.log(max(1.0, zombies.dying / FEW_ZOMBIES)) * 1.5),
        f"nodescope zombies --at {moment(zombies.at_ns)}",
        "a walk that stays as slow after they were freed",
    )


def pressure_link(case: Case, at_ns: int) -> Link | None:
    """Want of memory near the moment, if there was any."""
    rises = [
        rise
        for rise in read_rises(case, at_ns)
        if rise.name.startswith(("allocstall", "pgscan_direct")) and rise.near > 0
    ]
    hits = _limit_hits(case, at_ns)
    if not rises and not hits:
        return None
    if hits:
        path, count = hits[0]
        statement = f"{path} ran into its memory limit {count:,} times in that minute"
        subject, strength = path, 3.0
    else:
        worst = max(rises, key=lambda rise: rise.near)
        statement = f"{worst.name} grew by {worst.near:,.0f} a second"
        subject, strength = "memory of the node", 2.0
    return Link(
        "state", subject, statement, strength,
        f"nodescope top --by cgroup --frame try_to_free {around(at_ns)}",
        "no reclaim of that cgroup at that time",
    )  # fmt: skip


def _limit_hits(case: Case, at_ns: int) -> list[tuple[str, int]]:
    window = Window(at_ns - NEAR_S * SECOND_NS, at_ns + 10 * SECOND_NS)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for row in sorted(case.rows("cgroups", window), key=lambda row: row["time_ns"]):
        if row["memory_limit_hits"] is not None:
            first.setdefault(row["cgroup"], row["memory_limit_hits"])
            last[row["cgroup"]] = row["memory_limit_hits"]
    grown = [(path, last[path] - first[path]) for path in first if last[path] > first[path]]
    return sorted(grown, key=lambda each: (-each[1], each[0]))


def read_rises(case: Case, at_ns: int) -> list[Rise]:
    """Counters of vmstat: their rate near the moment and in the minutes before."""
    near = Window(at_ns - NEAR_S * SECOND_NS, at_ns + 5 * SECOND_NS)
    before = Window(at_ns - BEFORE_S * SECOND_NS, near.from_ns)
    rates = {
        "near": _rates(case.rows("memory", near)),
        "before": _rates(case.rows("memory", before)),
    }
    return [
        Rise(name, rate, rates["before"].get(name, 0.0)) for name, rate in rates["near"].items()
    ]


def _rates(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    ends: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        ends.setdefault(row["name"], []).append((row["time_ns"], row["value"]))
    rates = {}
    for name, listed in ends.items():
        (start, first), (end, last) = min(listed), max(listed)
        if end > start and last >= first and not name[0].isupper():  # meminfo is capitalised
            rates[name] = (last - first) * SECOND_NS / (end - start)
    return rates


# What people suspect first, and how the kernel counts it.
_SUSPECTS = {
    "pgfault": "page faults",
    "compact_stall": "compaction",
    "thp_fault_alloc": "huge page faults",
    "allocstall_normal": "direct reclaim",
    "pgscan_direct": "direct reclaim",
    "pgmajfault": "faults that read the disk",
}


def rule_out_rises(case: Case, at_ns: int, share_of: dict[str, float]) -> list[RuledOut]:
    """Counters that people suspect, with why they are not it."""
    found: dict[str, RuledOut] = {}
    for rise in read_rises(case, at_ns):
        label = _SUSPECTS.get(rise.name)
        if label is None or label in found or rise.before <= 0:
            continue
        share = share_of.get(label, 0.0)
        if share >= 0.3:
            continue
        if rise.ratio < 1.05:
            said = f"{label} did not rise"
        else:
            said = f"{label} rose {rise.ratio:.1f}×"
        why = "" if rise.ratio < RISE else f", and {share:.0%} of the core's samples"
        found[label] = RuledOut(label, f"{said}{why}: ruled out")
    return list(found.values())


def rule_out_throttling(case: Case, at_ns: int) -> list[RuledOut]:
    """Cgroups that were throttled near the moment: a throttled task runs less, not more."""
    window = Window(at_ns - NEAR_S * SECOND_NS, at_ns + 10 * SECOND_NS)
    ends: dict[str, list[int]] = {}
    for row in sorted(case.rows("cgroups", window), key=lambda row: row["time_ns"]):
        if row["throttled_us"]:
            ends.setdefault(row["cgroup"], []).append(row["throttled_us"])
    grown = {path: listed[-1] - listed[0] for path, listed in ends.items()}
    worst = max(grown.items(), key=lambda each: each[1], default=("", 0))
    if worst[1] <= 0:
        return []
    return [
        RuledOut(
            "CPU throttling",
            f"{worst[0]} was throttled for {worst[1] / 1e6:.1f} s in that minute; ruled out: "
            "throttling takes a core away, it does not hold one in the kernel",
        )
    ]
