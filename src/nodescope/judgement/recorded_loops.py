"""Loops in a recording: units, containers, and children inside units that run on.

Wider than what an audit calls a loop: what ends again and again before a moment and is
started anew may leave something behind each time, whether it fails or not.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nodescope.judgement.cgroup_churn import Churn
from nodescope.judgement.loop_rules import (
    ENDS_AFTER_NS,
    ENDS_WITHIN_NS,
    LEAST_TIMES,
    decide_ends,
    is_often,
    middle_period_ns,
)
from nodescope.judgement.unit_insides import ChildLoop
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import (
    ContainerDetails,
    ContainerExitDetails,
    UnitChildDetails,
    UnitRunDetails,
)
from nodescope.records.node_tables import ContainerRow, UnitRow
from nodescope.sources.cgroups.name_pattern import lies_in, name_pattern, split_path

REPORTED_AFTER_NS = 120 * SECOND_NS  # a hidden loop is reported after it was watched for a while
END_KINDS = ("unit_exit", "unit_failed", "unit_restart", "container_exit")
HIDDEN_KINDS = ("unit_hidden_loop", "unit_child_failing")
_SAME_END_NS = 5 * SECOND_NS  # a restart so soon after an end is of that end


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
        return inside if inside is not None and inside.times > len(self.times) else None

    @property
    def count(self) -> int:
        """How often it was seen to end up to the moment."""
        return self.hidden.times if self.hidden else self.before

    @property
    def loops(self) -> bool:
        """Return whether it loops, by its own exits or by those of its child."""
        before = self.before
        return self.hidden is not None or decide_ends(before, len(self.times) - before)

    @property
    def period_s(self) -> float:
        """Seconds from one time to the next, the middle one of all."""
        if self.hidden is not None:
            return self.hidden.watched_ns / self.hidden.times / SECOND_NS
        period_ns = middle_period_ns(self.times)
        return math.inf if period_ns is None else period_ns / SECOND_NS

    def stands_in(self, place: str) -> bool:
        """Return whether its cgroups lie in that place, or the place in one of them."""
        if not place.rstrip("/"):  # everything lies in the root: only what is right there counts
            return "/" in self.parents or any(split_path(each)[0] == "/" for each in self.cgroups)
        return any(lies_in(each, place) or lies_in(place, each) for each in self.cgroups) or any(
            lies_in(each, place) for each in self.parents
        )

    def own(self, churned: Iterable[Churn]) -> list[Churn]:
        """Return those of its own: by their name, by lying in its own, by who made them."""
        named = {(parent, name_pattern(name)) for parent, name in map(split_path, self.cgroups)}
        return [
            each
            for each in churned
            if (each.parent, each.pattern) in named
            or any(lies_in(each.parent, mine) for mine in self.cgroups)
            or any(lies_in(each.maker_cgroup, mine) for mine in self.cgroups if each.maker_cgroup)
        ]

    def lies(self, cgroup: str | None) -> None:
        """Keep a cgroup of its own; the root is nobody's."""
        if cgroup and cgroup != "/":
            self.cgroups.add(cgroup)


def find_recorded_loops(
    events: Iterable[Event],
    containers: Iterable[ContainerRow],
    units: Iterable[UnitRow],
    at_ns: int,
) -> list[Looper]:
    """Return units and containers that end again and again, by the hour before and a look ahead.

    `events` are of `reach_of(at_ns)`, `containers` the rows of the hour before, `units` the
    state at the moment.
    """
    found: dict[tuple[str, str], Looper] = {}

    def looper(kind: str, name: str) -> Looper:
        return found.setdefault((kind, name), Looper(kind, name, at_ns))

    seen = list(events)
    for event in seen:
        if event.kind in END_KINDS and event.time_ns < at_ns + ENDS_AFTER_NS:
            kind = "container" if event.kind == "container_exit" else "unit"
            _add_end(looper(kind, event.subject), event)
    for event in seen:
        if event.kind in HIDDEN_KINDS:
            _add_inside(looper("unit", event.subject), event)
    _add_container_rows(containers, looper)
    for row in units:
        mine = found.get(("unit", row.unit))
        if mine is not None and is_of(row, mine):
            mine.lies(row.cgroup)
    return [each for each in found.values() if each.loops]


def reach_of(at_ns: int) -> Window:
    """Return the time of which events are needed to know what loops at a moment."""
    return Window(at_ns - ENDS_WITHIN_NS, at_ns + REPORTED_AFTER_NS)


def _add_end(looper: Looper, event: Event) -> None:
    if event.kind in ("unit_exit", "container_exit"):
        looper.times.append(event.time_ns)
        status = _exit_status(event)
        if status is not None and event.time_ns <= looper.at_ns:
            looper.exits[str(status)] += 1
    elif event.kind == "unit_restart" and not any(
        abs(time - event.time_ns) < _SAME_END_NS for time in looper.times[-3:]
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
    """Return the child loop that an event reports; None if it tells too little, or nonsense."""
    told = event.get(UnitChildDetails)
    failed, watched = told.failed_ends, told.watched_s
    if failed is None or watched is None:
        return None
    if not (failed < 10**9 and is_often(failed) and 0 < watched < 10**9):
        return None
    ends, watched_ns = told.ends or {}, int(watched * SECOND_NS)
    return ChildLoop(
        kind="child", name=told.child or "?", inside=event.subject, times=failed,
        failures=failed, period_ns=watched_ns // failed, ends=tuple(ends), end_counts=ends,
        watched_ns=watched_ns, cgroup=told.cgroup, reported_ns=event.time_ns,
        command=told.command, longest_ran_s=told.longest_ran_s, main=told.main,
        main_age_s=told.main_age_s,
    )  # fmt: skip


def is_of(row: UnitRow, looper: Looper) -> bool:
    """Return whether a row of `units` is of the unit that loops, not of a namesake."""
    told = looper.inside.cgroup if looper.inside is not None else None
    return not told or not row.cgroup or row.cgroup == told


def _add_container_rows(rows: Iterable[ContainerRow], looper: Callable[[str, str], Looper]) -> None:
    """Ids that churn under one name are a loop even where no event was seen."""
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
        if not each.times and len(times) > LEAST_TIMES:  # the first id may be old
            each.times = times
