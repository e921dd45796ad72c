"""Judge whether dying memory cgroups matter, how they grow, and what would free them.

Pure: from counts, what they hold and what a walk cost to a verdict, a trend and
advice. Thresholds come from measurements on real kernels (docs/zombies.md): a walk
of 0.14 s and of 0.5 s without yielding, reclaim that costs four and thirty times as
much, memory of one and five hundredths of the node's.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nodescope.quantities import HOUR_NS, MINUTE_NS

Level = Literal["healthy", "warn", "critical", "unknown"]
Nature = Literal["leak", "cache", "unknown"]

WARN = 2_000
CRITICAL = 10_000
CRITICAL_WALKED = 7_000  # where each read of statistics walks them all
_WALK_WARN_NS, _WALK_CRITICAL_NS = 140_000_000, 500_000_000
_OVERHEAD_WARN, _OVERHEAD_CRITICAL = 0.01, 0.05
# A read that takes this long per cgroup visits each: flat ones take microseconds in all.
_WALKS_NS_EACH, _WALKS_NS = 5_000, 5_000_000
_SLAB_BYTES, _PER_CPU_BYTES = 13_000, 2_300
_MOST_POINTS = 240
_WORTH = 0.05  # of what a parent's children hold: a smaller kind is not what pins them
_FALL = 0.3  # of the peak, given back: a saw-tooth


@dataclass(frozen=True, slots=True)
class ZombieVerdict:
    """How bad it is, why, and the numbers it was held against."""

    level: Level
    reasons: tuple[str, ...]
    warn_at: int
    critical_at: int
    walks: bool  # reading statistics visits every cgroup on this kernel
    overhead_bytes: int | None  # kernel memory of the dying ones, roughly
    not_judged: tuple[str, ...] = ()  # what was not known, so that it could not make it worse


@dataclass(frozen=True, slots=True)
class Trend:
    """How the number moved over a time that was looked at."""

    looks: int
    over_ns: int
    per_hour: float
    first: int
    last: int


def judge(
    dying: int | None,
    tracked: int | None,
    walk_ns: int | None,
    possible_cpus: int | None,
    memory_bytes: int | None,
) -> ZombieVerdict:
    """Hold the numbers against the thresholds; what is None is not judged, and named."""
    unknown = (
        (walk_ns is None, "what reading statistics costs"),
        (possible_cpus is None or memory_bytes is None, "what share of memory they take"),
    )
    not_judged = tuple(what for missing, what in unknown if missing)
    walks = is_walking(walk_ns, tracked)
    critical_at = CRITICAL_WALKED if walks else CRITICAL
    if dying is None:
        reason = "only a part of the hierarchy is mounted here: dying ones cannot be counted"
        return ZombieVerdict("unknown", (reason,), WARN, critical_at, walks, None, not_judged)
    overhead = None
    if possible_cpus is not None:
        overhead = dying * (_SLAB_BYTES + _PER_CPU_BYTES * possible_cpus)
    share = overhead / memory_bytes if overhead and memory_bytes else 0.0
    slow = walk_ns if walks and walk_ns is not None else 0
    checks = (
        (dying, WARN, critical_at, f"{dying:,} dying"),
        (slow, _WALK_WARN_NS, _WALK_CRITICAL_NS, f"one read walks for {slow / 1e6:.0f} ms"),
        (share, _OVERHEAD_WARN, _OVERHEAD_CRITICAL, f"they take {share:.1%} of memory"),
    )
    levels: list[Level] = ["healthy"]
    reasons = []
    for value, warn, critical, reason in checks:
        if value >= warn:
            levels.append("critical" if value >= critical else "warn")
            reasons.append(reason)
    level: Level = max(levels, key=("healthy", "warn", "critical").index)
    return ZombieVerdict(level, tuple(reasons), WARN, critical_at, walks, overhead, not_judged)


def is_walking(walk_ns: int | None, tracked: int | None) -> bool:
    """Return whether that read visited every cgroup, as far as its duration tells."""
    if walk_ns is None or not tracked:
        return False
    return walk_ns >= _WALKS_NS and walk_ns / tracked >= _WALKS_NS_EACH


def find_trend(times_ns: Sequence[int], values: Sequence[int]) -> Trend | None:
    """The slope as the median of all slopes between two looks (Theil–Sen); None from one look."""
    if len(times_ns) < 2 or times_ns[-1] <= times_ns[0]:
        return None
    step = -(-len(times_ns) // _MOST_POINTS)
    points = list(zip(times_ns, values, strict=True))
    kept = points[::step] if points[-1] in points[::step][-1:] else [*points[::step], points[-1]]
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0])
        for at, earlier in enumerate(kept)
        for later in kept[at + 1 :]
        if later[0] > earlier[0]
    ]
    per_hour = _median(slopes) * HOUR_NS
    return Trend(len(points), times_ns[-1] - times_ns[0], per_hour, values[0], values[-1])


def _median(values: list[float]) -> float:
    ordered = sorted(values)  # the module `statistics` takes longer to import than to sort
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def time_to_critical_ns(dying: int, trend: Trend | None, critical_at: int) -> int | None:
    """How long until the threshold, if it goes on like that; None if it does not grow."""
    if dying >= critical_at:
        return 0
    if trend is None or trend.per_hour <= 0:
        return None
    return round((critical_at - dying) / trend.per_hour * HOUR_NS)


def find_nature(
    times_ns: Sequence[int], values: Sequence[int], removed: int, unreleased: int
) -> Nature:
    """Leak or cache: it grows for an hour and half of those removed stay, or it falls by itself.

    `removed` and `unreleased` are of the same time: cgroups removed, and those of
    them that were still held 15 s later.
    """
    trend = find_trend(times_ns, values)
    if trend is None:
        return "unknown"
    if _falls(values):
        return "cache"
    grows = trend.per_hour > 0 and trend.over_ns >= 0.95 * HOUR_NS
    return "leak" if grows and removed > 0 and unreleased * 2 >= removed else "unknown"


def _falls(values: Sequence[int]) -> bool:
    """Return whether a good part of a peak, more than a handful, was given back at once."""
    peak = values[0]
    for value in values:
        peak = max(peak, value)
        if peak - value > max(_FALL * peak, 20):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that frees dying cgroups, or does not: said for one parent, or for all."""

    parent: str | None
    helps: bool
    text: str
    command: str | None = None


def advise(
    parents: Iterable[tuple[str, Mapping[str, int], str]],
    reclaim_file: str | None,
) -> list[Advice]:
    """Return the steps that free them on this kernel, in the order to try them.

    `parents` are (path, held bytes by kind, directory); `reclaim_file` is the file
    by which a parent can be told to reclaim on this kernel, if there is one.
    """
    # The recorder judges zombies and advises nobody: it starts without views.
    from nodescope.records.view import View
    from nodescope.records.view_forms import render_command

    watch = render_command(View("zombies", watch_ns=MINUTE_NS))
    advice = [Advice(None, True, "stop what makes them first; this says what does", watch)]
    kinds: set[str] = set()
    for path, amounts, directory in parents:
        least = _WORTH * sum(amounts.values())
        held = {kind: amount for kind, amount in amounts.items() if amount >= least}
        kinds.update(held)
        if "shmem" in held:
            text = "delete the tmpfs files that pin them, or end who holds them open"
            advice.append(Advice(path, True, text, render_command(View("zombies", files=True))))
        if "file" in held and reclaim_file is not None and path != "/":
            text = "reclaim the page cache below it, also what lives there uses (EAGAIN is fine)"
            amount = "0" if reclaim_file == "memory.force_empty" else str(held["file"])
            file = shlex.quote(f"{directory}/{reclaim_file}")  # names are whoever's choice
            advice.append(Advice(path, True, text, f"echo {amount} > {file}"))
        if "swap" in held:
            advice.append(Advice(path, True, "bring swap back in", "swapoff -a && swapon -a"))
    if "file" in kinds or not kinds:
        text = "drop the whole node's page cache: nearly all go, may stall for seconds"
        advice.append(Advice(None, True, text, "echo 1 > /proc/sys/vm/drop_caches"))
    if "shmem" in kinds:
        text = "drop_caches, force_empty and reclaim free none that tmpfs pins"
        advice.append(Advice(None, False, text))
    text = (
        "removing or remounting cgroups: a dying one has no directory; cgroup v2 has them as well"
    )
    advice.append(Advice(None, False, text))
    return advice
