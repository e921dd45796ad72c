"""Where zombies come from: who makes cgroups that are never released, and why it runs.

Three witnesses, each of which may be missing: what removed cgroups still hold, by
parent (`dying_parents`); who makes and removes cgroups (`cgroup_churn`); what loops
(units and containers, with their events). They must agree on a place in the tree.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodescope.analysis.window import SECOND_NS, Window
from nodescope.diagnosis.case import LOOKAHEAD_NS, LOOKBACK_NS, Case
from nodescope.diagnosis.finding import Link, Root
from nodescope.diagnosis.owners import why_link
from nodescope.diagnosis.showing import around, moment
from nodescope.quantities import format_duration

LEAST_LOOPS = 3


@dataclass(frozen=True, slots=True)
class Inside:
    """A child that fails again and again inside a unit that runs on."""

    child: str
    failed: int
    watched_s: float
    ends: tuple[str, ...]  # `exit code 4`
    cgroup: str | None  # of the unit: another systemd may have one of that name


@dataclass(slots=True)
class Looper:
    """Something that ends and is started again."""

    kind: str  # unit or container
    name: str
    times: list[int] = field(default_factory=list)
    exits: Counter[str] = field(default_factory=Counter)
    places: set[str] = field(default_factory=set)  # cgroups, and parents of cgroups
    ids: set[str] = field(default_factory=set)
    inside: Inside | None = None

    @property
    def count(self) -> int:
        """How often it was seen to end."""
        return max(len(self.times), self.inside.failed if self.inside else 0)

    @property
    def period_s(self) -> float:
        """Seconds from one time to the next, the middle one of all."""
        if self.inside is not None and self.inside.failed > len(self.times):
            return self.inside.watched_s / self.inside.failed
        gaps = sorted(
            b - a for a, b in zip(sorted(self.times), sorted(self.times)[1:], strict=False)
        )
        return gaps[len(gaps) // 2] / SECOND_NS if gaps else math.inf


@dataclass(frozen=True, slots=True)
class Place:
    """A parent of cgroups that die and stay."""

    path: str
    dying: int | None
    held_bytes: int
    kinds: tuple[str, ...]
    removed: int  # in the hour before
    unreleased: int
    maker: str | None
    pattern: str | None
    maker_pid: int | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """One explanation of the zombies."""

    links: tuple[Link, ...]
    root: Root
    arithmetic: str | None
    score: float


def find_places(case: Case, at_ns: int) -> list[Place]:
    """Parents with dying children, those with most first."""
    dying: dict[str, int | None] = {}
    held: Counter[str] = Counter()
    kinds: dict[str, list[str]] = defaultdict(list)
    for row in case.state("dying_parents", ["path", "kind"], at_ns):
        path = row["path"]
        dying[path] = max(filter(None, (dying.get(path), row["dying"])), default=None)
        held[path] += row["held_bytes"] or 0
        if row["kind"] and row["held_bytes"]:
            kinds[path].append(row["kind"])
    churn = _churn_by_parent(case, at_ns)
    places = []
    for path in dying.keys() | churn.keys():
        removed, unreleased, maker, pattern, pid = churn.get(path, (0, 0, None, None, None))
        if not dying.get(path) and not held[path] and not unreleased:
            continue
        places.append(
            Place(path, dying.get(path), held[path], tuple(kinds[path]), removed, unreleased,
                  maker, pattern, pid)
        )  # fmt: skip
    return sorted(places, key=lambda p: (-(p.dying or 0), -p.unreleased, -p.held_bytes, p.path))


Churn = tuple[int, int, str | None, str | None, int | None]


def _churn_by_parent(case: Case, at_ns: int) -> dict[str, Churn]:
    window = Window(at_ns - LOOKBACK_NS, at_ns + SECOND_NS)
    removed: Counter[str] = Counter()
    latest: dict[tuple[str, str], Mapping[str, Any]] = {}
    makers: dict[str, Counter[tuple[str, str, int | None]]] = defaultdict(Counter)
    for row in sorted(case.rows("cgroup_churn", window), key=lambda row: row["time_ns"]):
        removed[row["parent"]] += row["removed"]
        latest[row["parent"], row["pattern"]] = row
        if row["maker"] and row["made"]:
            makers[row["parent"]][row["maker"], row["pattern"], row["maker_pid"]] += row["made"]
    unreleased: Counter[str] = Counter()
    for (parent, _), last in latest.items():
        unreleased[parent] += last["unreleased"] or 0
    found: dict[str, Churn] = {}
    for parent in removed:
        top = makers[parent].most_common(1)
        maker, pattern, pid = top[0][0] if top else (None, None, None)
        found[parent] = (removed[parent], unreleased[parent], maker, pattern, pid)
    return found


def find_loopers(case: Case, at_ns: int) -> list[Looper]:
    """Units and containers that ended at least three times in the hour before."""
    found: dict[tuple[str, str], Looper] = {}
    since = at_ns - LOOKBACK_NS

    def looper(kind: str, name: str) -> Looper:
        return found.setdefault((kind, name), Looper(kind, name))

    ends = ("unit_exit", "unit_failed", "unit_restart", "container_exit")
    for event in case.events_of(*ends, within=Window(since, at_ns + 60 * SECOND_NS)):
        each = looper("container" if event.kind == "container_exit" else "unit", event.subject)
        if event.kind in ("unit_exit", "container_exit"):
            each.times.append(event.time_ns)
            code = event.details.get("exit_status", event.details.get("exit_code"))
            if code is not None:
                each.exits[str(code)] += 1
        elif event.kind == "unit_restart" and not any(
            abs(time - event.time_ns) < 5 * SECOND_NS for time in each.times[-3:]
        ):
            each.times.append(event.time_ns)
        for key in ("cgroup", "cgroup_parent"):
            if event.details.get(key):
                each.places.add(str(event.details[key]))
    inside = ("unit_hidden_loop", "unit_child_failing")
    for event in case.events_of(*inside, within=Window(since, at_ns + LOOKAHEAD_NS)):
        each = looper("unit", event.subject)
        each.inside = _inside(event.details)
        if each.inside is not None and each.inside.cgroup:
            each.places.add(each.inside.cgroup)
    _add_container_rows(case, since, at_ns, looper)
    for row in case.state("units", ["unit"], at_ns):
        mine = found.get(("unit", row["unit"]))
        if mine is not None and row["cgroup"] and _is_of(row, mine):
            mine.places.add(row["cgroup"])
    return [each for each in found.values() if each.count >= LEAST_LOOPS]


def _inside(details: Mapping[str, Any]) -> Inside | None:
    """What an event tells of the child; one of another hand may tell less, or nonsense."""
    failed, watched = details.get("failed_ends"), details.get("watched_s")
    if not isinstance(failed, int) or not isinstance(watched, int | float):
        return None
    if not (0 < failed < 10**9 and 0 < watched < 10**9):
        return None
    ends, cgroup = details.get("ends"), details.get("cgroup")
    return Inside(
        str(details.get("child", "?")),
        failed,
        watched,
        tuple(str(each) for each in ends) if isinstance(ends, Mapping) else (),
        cgroup if isinstance(cgroup, str) else None,
    )


def _is_of(row: Mapping[str, Any], looper: Looper) -> bool:
    """Whether a row of `units` is of the unit that loops, not of one of the same name."""
    told = looper.inside.cgroup if looper.inside is not None else None
    return not told or not row["cgroup"] or row["cgroup"] == told


def _add_container_rows(case: Case, since: int, at_ns: int, looper: Any) -> None:
    """Ids that churn under one name are a loop even where no event was seen."""
    rows = case.rows("containers", Window(since, at_ns + SECOND_NS))
    first_seen: dict[tuple[str, str], int] = {}
    for row in sorted(rows, key=lambda row: row["time_ns"]):
        if not row["name"]:
            continue
        each: Looper = looper("container", row["name"])
        each.ids.add(row["id"])
        first_seen.setdefault((row["name"], row["id"]), row["time_ns"])
        for key in ("cgroup", "cgroup_parent"):
            if row[key]:
                each.places.add(row[key])
    by_name: dict[str, list[int]] = defaultdict(list)
    for (name, _), time_ns in first_seen.items():
        by_name[name].append(time_ns)
    for name, times in by_name.items():
        each = looper("container", name)
        if not each.times and len(times) > LEAST_LOOPS:
            each.times = times


def find_origins(case: Case, at_ns: int, dying: int, uptime_s: float | None) -> list[Origin]:
    """Explanations of the zombies, the best first."""
    places, loopers = find_places(case, at_ns), find_loopers(case, at_ns)
    origins = [
        _explain(case, at_ns, dying, uptime_s, place, looper)
        for place in places[:5]
        for looper in loopers
        if _stands_in(looper, place.path)
    ]
    if not origins and places:
        origins = [_place_alone(case, at_ns, place, dying) for place in places[:2]]
    return sorted(origins, key=lambda each: -each.score)


def _stands_in(looper: Looper, path: str) -> bool:
    """Whether its cgroups lie in that place; a place that says nothing fits none."""
    place = path.rstrip("/")
    return any(
        each.rstrip("/") == place or each.rstrip("/").rpartition("/")[0] == place
        or (place and each.startswith(f"{place}/")) or (each and place.startswith(f"{each}/"))
        for each in looper.places
    )  # fmt: skip


def _before(case: Case, at_ns: int) -> str:
    """The time that was looked at, in words."""
    length_ns = case.looked_back_ns(at_ns)
    hour = length_ns >= 0.95 * LOOKBACK_NS
    return "in the hour before" if hour else f"in the {format_duration(length_ns)} before"


def _place_link(case: Case, at_ns: int, place: Place, dying: int) -> Link:
    parts = []
    if place.dying:
        # cgroup v1 counts them only together: by parent it is an estimate.
        parts.append(f"about {place.dying:,} of {dying:,} dying cgroups are below {place.path}")
    if place.held_bytes:
        kinds = ", ".join(dict.fromkeys(place.kinds)) or "memory"
        parts.append(f"they hold {place.held_bytes / 1e6:,.0f} MB of {kinds}")
    if place.removed:
        # Only those removed over a minute ago are known to have stayed.
        stayed = f", {place.unreleased:,} of them not released" if place.unreleased else ""
        when = _before(case, at_ns)
        parts.append(f"{place.removed:,} were removed there {when}{stayed}")
    if place.maker:
        parts.append(f"made by {place.maker} as {place.pattern}")
    share = (place.dying or 0) / max(1, dying)
    strength = 1.0 + 3.0 * min(1.0, share) + (1.0 if place.unreleased else 0.0)
    return Link(
        "parent", place.path, "; ".join(parts) or f"dying cgroups under {place.path}", strength,
        f"nodescope zombies --at {moment(at_ns)} --parents", "dying cgroups that grow elsewhere",
    )  # fmt: skip


def _place_alone(case: Case, at_ns: int, place: Place, dying: int) -> Origin:
    link = _place_link(case, at_ns, place, dying)
    return Origin((link,), Root("cgroup", place.path), None, link.strength)


def _explain(
    case: Case, at_ns: int, dying: int, uptime_s: float | None, place: Place, looper: Looper
) -> Origin:
    period = looper.period_s
    ended = _ended(case, at_ns, looper)
    ids = f", {len(looper.ids)} ids under one name" if len(looper.ids) > 2 else ""
    unit = _unit_behind(case, at_ns, looper, place)
    alone = unit is not None and looper.kind == "unit" and looper.inside is None
    counted = unit["failures"] if unit is not None and alone else None
    arithmetic, fit = _arithmetic(dying, uptime_s, period, counted)
    loop = Link(
        "source",
        looper.name,
        f"{looper.kind} {looper.name} {ended}{ids}, every {period:.0f} s; its cgroups lie in "
        f"{place.path}" + (f"; {arithmetic}" if arithmetic else ""),
        1.5 + min(2.0, math.log(looper.count / LEAST_LOOPS + 1)) + fit,
        f"nodescope events {around(at_ns, 600)} --kind {_kind_shown(looper)}",
        f"zombies that go on growing while {looper.name} is stopped",
    )
    links = [_place_link(case, at_ns, place, dying), loop]
    root = Root(looper.kind, looper.name)
    if unit is not None:
        links.append(why_link(unit, at_ns, None if looper.kind == "unit" else looper.name))
        root = Root("unit", unit["unit"])
    score = sum(link.strength for link in links)
    return Origin(tuple(links), root, arithmetic, score)


def _ended(case: Case, at_ns: int, looper: Looper) -> str:
    inside = looper.inside
    if inside is not None and inside.failed > len(looper.times):
        ends = f" ({', '.join(inside.ends[:3])})" if inside.ends else ""
        return (
            f"runs on, but its child {inside.child} failed {inside.failed} times in "
            f"{inside.watched_s:.0f} s{ends}"
        )
    codes = ", ".join(code for code, _ in looper.exits.most_common(3))
    exits = f" (exit {codes})" if codes else ""
    return f"ended {len(looper.times)} times {_before(case, at_ns)}{exits}"


def _kind_shown(looper: Looper) -> str:
    if looper.kind == "container":
        return "container_exit"
    return "unit_hidden_loop" if looper.inside and not looper.times else "unit_exit"


def _arithmetic(
    dying: int, uptime_s: float | None, period_s: float, counted: int | None
) -> tuple[str | None, float]:
    """Whether the loops make as many zombies: those counted, else as many as the uptime holds."""
    if counted:
        text = f"it failed {counted:,} times since boot, against {dying:,} zombies"
        return _fit(text, dying / counted)
    if uptime_s is None or not math.isfinite(period_s) or period_s <= 0:
        return None, 0.0
    loops = uptime_s / period_s
    up = f"{uptime_s / 86400:.1f} days" if uptime_s > 86400 else f"{uptime_s / 60:.0f} minutes"
    text = f"{up} of uptime at one every {period_s:.0f} s are {loops:,.0f}"
    text += f", against {dying:,} zombies"
    return _fit(text, dying / loops)


def _fit(text: str, per_loop: float) -> tuple[str, float]:
    """What is said of the sum, and what it is worth."""
    if 0.5 <= per_loop <= 2:
        return text, 1.5
    if 0.1 <= per_loop <= 10:
        return f"{text} ({per_loop:.1f} each)", 0.5
    return f"{text}: that does not fit by itself", -1.0


def _unit_behind(case: Case, at_ns: int, looper: Looper, place: Place) -> Mapping[str, Any] | None:
    """The unit that loops, or that runs what loops."""
    rows = case.state("units", ["unit"], at_ns)
    for row in rows:
        if looper.kind == "unit" and row["unit"] == looper.name and _is_of(row, looper):
            return row
    if looper.kind == "unit":
        return None
    by_pid = [row for row in rows if place.maker_pid and row["main_pid"] == place.maker_pid]
    if by_pid:
        return by_pid[0]
    words = _words(looper.name)
    named = [row for row in rows if row["unit"].endswith(".service")
             and words & _words(row["unit"].removesuffix(".service"))]  # fmt: skip
    return max(named, key=lambda row: len(words & _words(row["unit"])), default=None)


def _words(name: str) -> set[str]:
    plain = "".join(letter if letter.isalnum() else " " for letter in name.lower())
    return {word for word in plain.split() if len(word) > 2 and word not in _COMMON_WORDS}


_COMMON_WORDS = {"service", "agent", "node", "the", "container", "daemon", "app"}
