"""How something grew before a limit was reached: steadily, by a step, or not at all.

A steady growth looks like a leak, a step like load. How long it was observed is said with it.
A fall by half is a new start (a restart, a kill): only the time since the last one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.diagnosis.links.seen_before import describe_look, look_before
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_bytes, format_duration
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupRow

FEWEST = 3  # readings, to speak of a shape
NOTICEABLE = 0.1  # of the last value: growth of less is none
MOSTLY = 0.7  # of the intervals rise: steady
IN_ONE_STEP = 0.6  # of the growth happens between two readings: a step
_NEW_START = 0.5
LARGEST_NS = 10 * MINUTE_NS  # before a moment: who grew most in that time

Reading = tuple[int, int]  # when, and the value
Writer = Callable[[float], str]  # a value in words
Shape = Literal["steady", "step", "flat", "unknown"]


@dataclass(frozen=True, slots=True)
class GrowthBefore:
    """Readings since the last new start, and their shape."""

    shape: Shape
    first: Reading
    last: Reading
    readings: int

    @property
    def grown(self) -> int:
        return self.last[1] - self.first[1]

    @property
    def length_ns(self) -> int:
        return self.last[0] - self.first[0]

    @property
    def per_minute(self) -> float:
        return self.grown * MINUTE_NS / max(1, self.length_ns)

    def describe(self, written: Writer = format_bytes) -> str:
        """Return the growth in words, with how long it was observed."""
        over = f"{self.readings} readings in {format_duration(self.length_ns)}"
        if self.shape == "unknown":
            return f"too few readings ({self.readings}) to see how it grew"
        ends = f"from {written(self.first[1])} to {written(self.last[1])} ({over})"
        if self.shape == "steady":
            return f"it grew steadily, by {written(self.per_minute)} a minute, {ends}"
        if self.shape == "step":
            return f"it grew in one step {ends}"
        return f"it did not grow much before: {ends}"


def describe_growth(growth: GrowthBefore | None, written: Writer = format_bytes) -> str:
    """Return how something grew, as the end of a sentence about it."""
    return "; how it grew was not recorded" if growth is None else f"; {growth.describe(written)}"


def write_count(number: float) -> str:
    """Return a count in words: `1,204`."""
    return f"{number:,.0f}"


def read_growth(readings: Sequence[Reading]) -> GrowthBefore | None:
    """Return how readings in the order of time grew; None without any."""
    if not readings:
        return None
    start = 0
    for at, (before, after) in enumerate(pairwise(readings), 1):
        if after[1] < _NEW_START * before[1]:
            start = at
    listed = readings[start:]
    return GrowthBefore(_shape(listed), listed[0], listed[-1], len(listed))


def _shape(listed: Sequence[Reading]) -> Shape:
    if len(listed) < FEWEST:
        return "unknown"
    rises = [after[1] - before[1] for before, after in pairwise(listed)]
    grown = listed[-1][1] - listed[0][1]
    if grown < NOTICEABLE * max(1, listed[-1][1]):
        return "flat"
    if max(rises) >= IN_ONE_STEP * grown and len(rises) > 1:
        return "step"
    rising = sum(each > 0 for each in rises)
    return "steady" if rising >= MOSTLY * len(rises) else "flat"


# -- of a cgroup -----------------------------------------------------------------


def read_memory(case: Case, path: str, at_ns: int) -> list[Reading]:
    """Return the memory of a cgroup in the hour before a moment, reading by reading."""
    return [
        (row.time_ns, row.memory_bytes)
        for row in _rows(case, path, at_ns)
        if row.memory_bytes is not None
    ]


def read_memory_limit(case: Case, path: str, at_ns: int) -> int | None:
    """Return the memory limit of a cgroup as it was last read."""
    limits = [row.memory_limit_bytes for row in _rows(case, path, at_ns)]
    return next((each for each in reversed(limits) if each is not None), None)


def read_tasks(case: Case, path: str, at_ns: int) -> list[Reading]:
    """Return the number of tasks of a cgroup in the hour before a moment."""
    return [(row.time_ns, row.tasks) for row in _rows(case, path, at_ns) if row.tasks is not None]


def _rows(case: Case, path: str, at_ns: int) -> list[CgroupRow]:
    before = Window(at_ns - LOOKBACK_NS, at_ns + 1)
    return case.rows(CgroupRow, before, ("cgroup", path))


def read_largest(
    case: Case, at_ns: int, value: Callable[[CgroupRow], int | None], under: str = ""
) -> Largest | None:
    """Return the cgroup that grew most in the minutes before, or has most of something.

    `under` is the path of a cgroup: only what lies below it is looked at.
    """
    before = Window(at_ns - LARGEST_NS, at_ns + SECOND_NS)
    readings: dict[str, list[Reading]] = {}
    for row in case.rows(CgroupRow, before):
        read = value(row)
        if read is not None and row.cgroup.strip("/") and row.cgroup.startswith(f"{under}/"):
            readings.setdefault(row.cgroup, []).append((row.time_ns, read))
    own = {path: listed for path, listed in readings.items() if not _is_outer(path, readings)}
    if not own:
        return None
    grown = {path: listed[-1][1] - listed[0][1] for path, listed in own.items()}
    first = max(grown, key=lambda path: (grown[path], path))
    total = sum(max(0, each) for each in grown.values())
    used = sum(listed[-1][1] for listed in own.values())
    if total and grown[first] >= 0.5 * total and grown[first] >= NOTICEABLE * used:
        return Largest(first, own[first], grown[first] / total, True)
    most = max(own, key=lambda path: (own[path][-1][1], path))
    return Largest(most, own[most], own[most][-1][1] / max(1, used), False)


@dataclass(frozen=True, slots=True)
class Largest:
    """A cgroup that grew most, or else has most of something."""

    path: str
    readings: list[Reading]
    share: float  # of the growth of all, or of what all have
    grew: bool

    @property
    def strength(self) -> float:
        """Return the evidence (in nats) that it is this one and no other."""
        return 1.0 + 3.0 * self.share

    def describe(self, case: Case, at_ns: int, of: str, written: Writer = format_bytes) -> str:
        """Return its share and how it grew, in words; `of` is what was counted."""
        share = f"{self.share:.0%} of the {of} that all cgroups have together, more than any other"
        if self.grew:
            seen = describe_look(look_before(case, "cgroups", at_ns, LARGEST_NS))
            share = f"{self.share:.0%} of the growth in {of} of all cgroups {seen}"
        return f"{self.path} has {share}{describe_growth(read_growth(self.readings), written)}"


def _is_outer(path: str, readings: dict[str, list[Reading]]) -> bool:
    """Decide whether another recorded cgroup below has most of what this one has."""
    mine = readings[path][-1][1]
    return any(
        other.startswith(f"{path}/") and listed[-1][1] >= 0.5 * mine
        for other, listed in readings.items()
    )
