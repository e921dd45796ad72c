"""What ends and is started again: units, containers, and children inside units that run on."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from nodescope.diagnosis.case import LOOKAHEAD_NS, LOOKBACK_NS, Case
from nodescope.diagnosis.links.churn import Churn, lies_in
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import (
    ContainerDetails,
    ContainerExitDetails,
    UnitChildDetails,
    UnitRunDetails,
)
from nodescope.records.node import ContainerRow, UnitRow
from nodescope.sources.cgroups.name_pattern import name_pattern, split_path

LEAST_LOOPS = 3
SOON_NS = 60 * SECOND_NS  # after the moment: what goes on there shows that it is a loop
_FULL_HOUR_NS = 0.95 * LOOKBACK_NS


@dataclass(frozen=True, slots=True)
class ChildLoop:
    """A child that fails again and again inside a unit that runs on."""

    child: str
    failed: int
    watched_s: float
    ends: tuple[str, ...]  # `exit code 4`
    cgroup: str | None  # of the unit: another systemd may have one of that name
    heard_ns: int


@dataclass(slots=True)
class Looper:
    """Something that ends and is started again, looked at from a moment."""

    kind: str  # unit or container
    name: str
    at_ns: int
    times: list[int] = field(default_factory=list)  # also some after the moment
    exits: Counter[str] = field(default_factory=Counter)  # up to the moment
    cgroups: set[str] = field(default_factory=set)  # its own
    parents: set[str] = field(default_factory=set)  # of its own, where the runtime told those
    ids: set[str] = field(default_factory=set)
    inside: ChildLoop | None = None

    @property
    def before(self) -> int:
        """How often it ended up to the moment."""
        return sum(time_ns <= self.at_ns for time_ns in self.times)

    @property
    def hidden(self) -> ChildLoop | None:
        """The child that fails inside it, if that is what shows the loop."""
        inside = self.inside
        return inside if inside is not None and inside.failed > len(self.times) else None

    @property
    def count(self) -> int:
        """How often it was seen to end up to the moment."""
        return self.hidden.failed if self.hidden else self.before

    @property
    def loops(self) -> bool:
        """Whether it is one: what began only after the moment has made nothing by then."""
        return self.hidden is not None or (self.before > 0 and len(self.times) >= LEAST_LOOPS)

    @property
    def period_s(self) -> float:
        """Seconds from one time to the next, the middle one of all."""
        if self.hidden is not None:
            return self.hidden.watched_s / self.hidden.failed
        times = sorted(self.times)
        gaps = sorted(b - a for a, b in pairwise(times))
        return gaps[len(gaps) // 2] / SECOND_NS if gaps else math.inf

    def stands_in(self, place: str) -> bool:
        """Whether its cgroups lie in that place, or the place in one of them."""
        if not place.rstrip("/"):  # everything lies in the root: only what is right there counts
            return "/" in self.parents or any(split_path(each)[0] == "/" for each in self.cgroups)
        return any(lies_in(each, place) or lies_in(place, each) for each in self.cgroups) or any(
            lies_in(each, place) for each in self.parents
        )

    def own(self, churned: Iterable[Churn]) -> list[Churn]:
        """Which of them are its own cgroups: by their name, or as they lie in its own."""
        named = {(parent, name_pattern(name)) for parent, name in map(split_path, self.cgroups)}
        return [
            each
            for each in churned
            if (each.parent, each.pattern) in named
            or any(lies_in(each.parent, mine) for mine in self.cgroups)
        ]

    def lies(self, cgroup: str | None) -> None:
        """Keep a cgroup of its own; the root is nobody's."""
        if cgroup and cgroup != "/":
            self.cgroups.add(cgroup)


def find_loopers(case: Case, at_ns: int) -> list[Looper]:
    """Units and containers that end again and again, by the hour before and a look ahead."""
    found: dict[tuple[str, str], Looper] = {}

    def looper(kind: str, name: str) -> Looper:
        return found.setdefault((kind, name), Looper(kind, name, at_ns))

    since = at_ns - LOOKBACK_NS
    ends = ("unit_exit", "unit_failed", "unit_restart", "container_exit")
    for event in case.events_of(*ends, within=Window(since, at_ns + SOON_NS)):
        kind = "container" if event.kind == "container_exit" else "unit"
        _add_end(looper(kind, event.subject), event)
    hidden = ("unit_hidden_loop", "unit_child_failing")
    for event in case.events_of(*hidden, within=Window(since, at_ns + LOOKAHEAD_NS)):
        _add_inside(looper("unit", event.subject), event)
    _add_container_rows(case, since, at_ns, looper)
    for row in case.state(UnitRow, at_ns):
        mine = found.get(("unit", row.unit))
        if mine is not None and is_of(row, mine):
            mine.lies(row.cgroup)
    return [each for each in found.values() if each.loops]


def _add_end(looper: Looper, event: Event) -> None:
    if event.kind in ("unit_exit", "container_exit"):
        looper.times.append(event.time_ns)
        status = _exit_status(event)
        if status is not None and event.time_ns <= looper.at_ns:
            looper.exits[str(status)] += 1
    elif event.kind == "unit_restart" and not any(
        abs(time - event.time_ns) < 5 * SECOND_NS for time in looper.times[-3:]
    ):
        looper.times.append(event.time_ns)
    container = event.get(ContainerDetails)
    looper.lies(container.cgroup)
    if container.cgroup_parent:
        looper.parents.add(container.cgroup_parent)
    if container.id and event.time_ns <= looper.at_ns:
        looper.ids.add(container.id)


def _exit_status(event: Event) -> int | None:
    """Return how the run of a unit or container ended, by its number."""
    status = event.get(UnitRunDetails).exit_status
    return event.get(ContainerExitDetails).exit_status if status is None else status


def _add_inside(looper: Looper, event: Event) -> None:
    """The latest that was heard up to the moment, else the first after it."""
    known = looper.inside
    if known is not None and event.time_ns > looper.at_ns:
        return
    looper.inside = read_inside(event) or known
    if looper.inside is not None:
        looper.lies(looper.inside.cgroup)


def read_inside(event: Event) -> ChildLoop | None:
    """What an event tells of the child; one of another hand may tell less, or nonsense."""
    told = event.get(UnitChildDetails)
    failed, watched = told.failed_ends, told.watched_s
    if failed is None or watched is None:
        return None
    if not (LEAST_LOOPS <= failed < 10**9 and 0 < watched < 10**9):
        return None
    ends = tuple(told.ends or ())
    return ChildLoop(told.child or "?", failed, watched, ends, told.cgroup, event.time_ns)


def is_of(row: UnitRow, looper: Looper) -> bool:
    """Whether a row of `units` is of the unit that loops, not of one of the same name."""
    told = looper.inside.cgroup if looper.inside is not None else None
    return not told or not row.cgroup or row.cgroup == told


def _add_container_rows(
    case: Case, since: int, at_ns: int, looper: Callable[[str, str], Looper]
) -> None:
    """Ids that churn under one name are a loop even where no event was seen."""
    rows = case.rows(ContainerRow, Window(since, at_ns + SECOND_NS))
    first_seen: dict[tuple[str, str], int] = {}
    for row in sorted(rows, key=lambda row: row.time_ns):
        if not row.name:
            continue
        each = looper("container", row.name)
        each.ids.add(row.id)
        first_seen.setdefault((row.name, row.id), row.time_ns)
        each.lies(row.cgroup)
        if row.cgroup_parent:
            each.parents.add(row.cgroup_parent)
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for (name, _), time_ns in first_seen.items():
        by_name[name].append(time_ns)
    for name, times in by_name.items():
        each = looper("container", name)
        if not each.times and len(times) > LEAST_LOOPS:
            each.times = times


# -- in words ------------------------------------------------------------------


def describe_before(case: Case, at_ns: int) -> str:
    """The time that was looked at."""
    length_ns = case.looked_back_ns(at_ns)
    if length_ns >= _FULL_HOUR_NS:
        return "in the hour before"
    return f"in the {format_duration(length_ns)} before"


def describe_ends(case: Case, looper: Looper) -> str:
    """How often it ended, and how."""
    inside = looper.hidden
    if inside is not None:
        ends = f" ({', '.join(inside.ends[:3])})" if inside.ends else ""
        later = inside.heard_ns - looper.at_ns
        heard = f", as was heard {format_duration(later)} later" if later > 0 else ""
        return (
            f"runs on, but its child {inside.child} failed {inside.failed} times in "
            f"{inside.watched_s:.0f} s{ends}{heard}"
        )
    codes = ", ".join(code for code, _ in looper.exits.most_common(3))
    exits = f" (exit {codes})" if codes else ""
    times = "once" if looper.before == 1 else f"{looper.before} times"
    return f"ended {times} {describe_before(case, looper.at_ns)}{exits}"
