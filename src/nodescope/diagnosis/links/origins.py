"""Where zombies come from: who makes cgroups that are never released, and why it runs.

Three witnesses, each of which may be missing: what removed cgroups still hold, by
parent (`dying_parents`); who makes and removes cgroups, and which of them stay (`churn`);
what loops (`loopers`). They must agree on a place in the tree. Where the makers' own cgroup
was recorded (`cgroup_makers`) it decides. Of several that loop in one place those whose own
cgroups were all released are ruled out; the others share what the place is worth, by what
speaks for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.diagnosis.finding import Link, Root, RuledOut
from nodescope.diagnosis.links.cgroup_makers import Maker, find_maker, make_links
from nodescope.diagnosis.links.loops_in_words import describe_before, describe_ends
from nodescope.diagnosis.links.owners import why_link
from nodescope.diagnosis.links.runners import Runner, find_namesake, find_runner
from nodescope.judgement.cgroup_churn import Churn, add_up, merge_makers
from nodescope.judgement.loop_rules import LEAST_TIMES
from nodescope.judgement.recorded_loops import (
    END_KINDS,
    HIDDEN_KINDS,
    Looper,
    find_recorded_loops,
    reach_of,
)
from nodescope.judgement.zombie_parents import ZombieParent, find_zombie_parents
from nodescope.judgement.zombie_reading import ZombieReading
from nodescope.quantities import SECOND_NS, format_bytes
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupChurnRow, ContainerRow, UnitRow
from nodescope.records.view import Moment, View, around
from nodescope.sources.cgroups.name_pattern import lies_in
from nodescope.wall_time import format_time_of_day

LEAST_SHARE = 0.2  # of the zombies: a place with fewer is no second explanation
MOST_PLACES = 5
MOST_RULED_OUT = 3  # those that look worst; every timer's service may loop without harm
NEARLY_ALL = 0.9  # of the zombies: then the way in one line need not say how many
MOST_OTHERS = 3  # other sources that a link names
LEAK = 1.5  # nats for cgroups of its own that stay, against it for those of others
DECIDING = ("parent", "source")


@dataclass(frozen=True, slots=True)
class Origin:
    """One explanation of the zombies."""

    links: tuple[Link, ...]
    root: Root
    arithmetic: str | None

    @property
    def score(self) -> tuple[float, float]:
        """How well the links hold that decide between explanations; then all of them."""
        deciding = (each.probability for each in self.links if each.kind in DECIDING)
        return math.prod(deciding), math.prod(each.probability for each in self.links)


@dataclass(frozen=True, slots=True)
class _Suspect:
    """Something that loops in a place, with what speaks for it."""

    place: ZombieParent
    looper: Looper
    own: tuple[Churn, ...]
    runner: Runner | None
    arithmetic: str | None
    evidence: float  # nats: what tells it from others that loop there

    @property
    def root(self) -> Root:
        if self.runner is not None:
            return Root("unit", self.runner.unit.unit)
        return Root(self.looper.kind, self.looper.name)

    @property
    def loops(self) -> float:
        """Return the evidence (in nats) of the number of exits."""
        return min(2.0, math.log(self.looper.count / LEAST_TIMES + 1))

    @property
    def cleared(self) -> bool:
        """Return whether all of its cgroups were released, as far as that is known."""
        known = all(each.unreleased == 0 for each in self.own)
        return known and any(each.clean for each in self.own)


def find_origins(
    case: Case, at_ns: int, zombies: ZombieReading
) -> tuple[list[Origin], list[RuledOut]]:
    """Explanations of the zombies, the best first; and what loops beside them in innocence."""
    hour = Window(at_ns - LOOKBACK_NS, at_ns + SECOND_NS)
    by_maker = add_up(case.rows(CgroupChurnRow, hour), at_ns)
    churned = merge_makers(by_maker)
    places = find_zombie_parents(zombies.parents, churned)
    dying = zombies.likely_dying or 0
    uptime_s = None if zombies.uptime_ns is None else zombies.uptime_ns / SECOND_NS
    units = case.state(UnitRow, at_ns)
    events = case.events_of(*END_KINDS, *HIDDEN_KINDS, within=reach_of(at_ns))
    loopers = find_recorded_loops(events, case.rows(ContainerRow, hour), units, at_ns)
    origins: list[Origin] = []
    cleared: list[_Suspect] = []
    for place in places[:MOST_PLACES]:
        others = _find_other_leaks(place, places)
        found = [
            _suspect(case, place, looper, churned, units, dying, uptime_s)
            for looper in loopers
            if looper.stands_in(place.path)
        ]
        cleared += [each for each in found if each.cleared]
        maker = find_maker(case, place, by_maker, at_ns)
        suspects = _by_root(
            [each for each in found if not (each.cleared or _is_not_it(each, maker))]
        )
        origins += [_explain(case, each, suspects, units, others) for each in suspects]
        if maker is not None:
            if all(each.root != maker.root for each in suspects):
                links = make_links(maker, units, at_ns)
                origins.append(_by_maker(case, at_ns, place, others, maker, links))
        elif suspects and _made_by_others(place, suspects):
            origins.append(_place_alone(case, at_ns, place, others))
    if not origins:
        origins = [
            _place_alone(case, at_ns, place, _find_other_leaks(place, places))
            for place in places[:2]
            if place is places[0] or place.share >= LEAST_SHARE
        ]
    origins.sort(key=lambda each: each.score, reverse=True)
    named = {origin.root for origin in origins}
    innocent = [each for each in _by_root(cleared) if each.root not in named]
    innocent.sort(key=lambda each: -each.looper.count)
    return origins, [_rule_out(case, each) for each in innocent[:MOST_RULED_OUT]]


# -- places --------------------------------------------------------------------


def _find_other_leaks(place: ZombieParent, places: Sequence[ZombieParent]) -> list[ZombieParent]:
    """Return the places elsewhere in the tree whose removed cgroups were not released."""
    return [
        each
        for each in places
        if each.unreleased >= LEAST_TIMES
        and not lies_in(each.path, place.path)
        and not lies_in(place.path, each.path)
    ]


def _place_link(
    case: Case, at_ns: int, place: ZombieParent, others: Sequence[ZombieParent]
) -> Link:
    parts = []
    if place.dying:
        # Parents are read more seldom than the total: two readings are not compared.
        read = f" (read at {format_time_of_day(place.read_ns)})" if place.read_ns else ""
        parts.append(f"{place.describe_count()} dying cgroups are below {place.path}{read}")
    if place.held_bytes:
        kinds = ", ".join(dict.fromkeys(place.kinds)) or "memory"
        parts.append(f"they hold {format_bytes(place.held_bytes)} of {kinds}")
    if place.removed:
        # Only those removed over 15 s ago are known to have stayed.
        stayed = f", {place.stayed:,} of them not released after 15 s" if place.stayed else ""
        parts.append(f"{place.removed:,} were removed there {describe_before(case, at_ns)}{stayed}")
    most = next(iter(place.churned), None)
    if most is not None and most.maker:
        which = "most of what stays was " if place.unreleased and len(place.churned) > 1 else ""
        named = f"as {most.pattern}" if most.pattern != "*" else "and named by ids"
        parts.append(f"{which}made by {most.maker} {named}")
    partly = place.dying is not None and (bool(others) or place.share < NEARLY_ALL)
    parts += [
        f"another source: {each.unreleased:,} were removed below {each.path} and not released"
        for each in others[:MOST_OTHERS]
    ]
    strength = 1.0 + 3.0 * place.share + (1.0 if place.unreleased else 0.0)
    return Link(
        "parent", place.path, "; ".join(parts) or f"dying cgroups under {place.path}", strength,
        View("zombies", Moment(at_ns), parents=True),
        f"few dying cgroups below {place.path}, and most of them elsewhere",
        f"about {place.dying:,} zombies below {place.path}" if partly else "",
    )  # fmt: skip


def _place_alone(
    case: Case, at_ns: int, place: ZombieParent, others: Sequence[ZombieParent]
) -> Origin:
    link = _place_link(case, at_ns, place, others)
    return Origin((link,), Root("cgroup", place.path), None)


def _by_maker(
    case: Case,
    at_ns: int,
    place: ZombieParent,
    others: Sequence[ZombieParent],
    maker: Maker,
    links: Sequence[Link],
) -> Origin:
    return Origin((_place_link(case, at_ns, place, others), *links), maker.root, None)


# -- what loops there ------------------------------------------------------------


def _suspect(
    case: Case,
    place: ZombieParent,
    looper: Looper,
    churned: Sequence[Churn],
    units: Sequence[UnitRow],
    dying: int,
    uptime_s: float | None,
) -> _Suspect:
    there = [each for each in churned if lies_in(each.parent, place.path)]
    own = tuple(looper.own(there))
    most = next(iter(own or place.churned), None)
    runner = find_runner(case, looper, most.maker_pid if most else None, units)
    arithmetic, fit = _arithmetic(case, dying, uptime_s, looper, runner)
    stays, of_own = (sum(each.unreleased or 0 for each in some) for some in (there, own))
    # A cgroup or two that linger are no leak yet.
    leak = LEAK * min(1.0, stays / LEAST_TIMES) * (2 * of_own / stays - 1) if stays else 0.0
    return _Suspect(place, looper, own, runner, arithmetic, leak + fit)


def _by_root(suspects: Sequence[_Suspect]) -> list[_Suspect]:
    """Keep the best suspect for each root: a unit and the container it runs have the same."""
    best: dict[Root, _Suspect] = {}
    for each in suspects:
        known = best.get(each.root)
        if known is None or each.evidence > known.evidence:
            best[each.root] = each
    return list(best.values())


def _is_not_it(suspect: _Suspect, maker: Maker | None) -> bool:
    """Return whether another is known to make what stays, and nothing that stays is its own."""
    if maker is None or suspect.root == maker.root:
        return False
    return not any(each.unreleased for each in suspect.own)


def _made_by_others(place: ZombieParent, suspects: Sequence[_Suspect]) -> bool:
    """Return whether most cgroups known to stay there belong to nobody who loops."""
    owned = {each for suspect in suspects for each in suspect.own}
    others = sum(each.unreleased or 0 for each in place.churned if each not in owned)
    return others >= LEAST_TIMES and others > place.unreleased / 2


def _strength(suspect: _Suspect, rivals: Sequence[_Suspect]) -> float:
    """Return the link's evidence; suspects that loop in one place share it by their own."""
    loops = min(each.loops for each in rivals)
    alone = 1.5 + loops + suspect.evidence
    others = sum(math.exp(each.evidence) for each in rivals if each is not suspect)
    return min(alone, suspect.evidence - math.log(others)) if others else alone


def _explain(
    case: Case,
    suspect: _Suspect,
    rivals: Sequence[_Suspect],
    units: Sequence[UnitRow],
    others: Sequence[ZombieParent],
) -> Origin:
    looper, place, runner = suspect.looper, suspect.place, suspect.runner
    at_ns = looper.at_ns
    often = f"{describe_ends(case, looper)}{_ids(looper)}, every {looper.period_s:.0f} s"
    said = [
        f"{looper.kind} {looper.name} {often}",
        f"its cgroups lie in {place.path}{_stay(suspect)}",
    ]
    if suspect.arithmetic:
        said.append(suspect.arithmetic)
    alike = [
        each.looper.name
        for each in rivals
        if each is not suspect and math.isclose(each.evidence, suspect.evidence)
    ]
    if alike:
        said.append(f"nothing that was recorded tells it from {', '.join(alike[:3])}")
    namesake = find_namesake(looper, units) if runner is None else None
    if namesake is not None:
        said.append(f"perhaps run by {namesake} (by its name)")
    source = Link(
        "source", looper.name, "; ".join(said), _strength(suspect, rivals),
        View("events", around(at_ns, 600), kinds=_kinds_shown(suspect)),
        f"zombies below {place.path} that go on growing while {looper.name} is stopped",
    )  # fmt: skip
    links = [_place_link(case, at_ns, place, others), source]
    if runner is not None:
        runs = f"{looper.name} ({runner.because})" if runner.because else None
        links.append(why_link(runner.unit, units, at_ns, runs))
    return Origin(tuple(links), suspect.root, suspect.arithmetic)


def _ids(looper: Looper) -> str:
    return f", {len(looper.ids)} ids under one name" if len(looper.ids) > 2 else ""


def _stay(suspect: _Suspect) -> str:
    """Describe the cgroups that are the suspect's own."""
    stayed = sum(each.stayed for each in suspect.own)
    settled = sum(each.settled for each in suspect.own)
    return f", where {stayed:,} of {settled:,} of its own stayed" if stayed else ""


def _kinds_shown(suspect: _Suspect) -> tuple[str, ...]:
    """Return the kinds of events that show the loop, and who runs what loops."""
    looper, runner = suspect.looper, suspect.runner
    if looper.kind == "container":
        told = runner.event if runner is not None else None
        return ("container_exit", told) if told else ("container_exit",)
    return ("unit_hidden_loop",) if looper.inside and not looper.times else ("unit_exit",)


def _rule_out(case: Case, suspect: _Suspect) -> RuledOut:
    looper, path = suspect.looper, suspect.place.path
    released = sum(each.settled for each in suspect.own)
    where = (("pattern", suspect.own[0].pattern),)
    return RuledOut(
        f"{looper.kind} {looper.name}",
        f"{looper.kind} {looper.name} {describe_ends(case, looper)}, in {path}, too; ruled out "
        f"because none of its own cgroups stayed: all {released:,} that were removed over "
        "15 s before were released",
        View("table", around(looper.at_ns, 900), table="cgroup_churn", where=where),
        case.absence("cgroup_churn", Window(looper.at_ns - LOOKBACK_NS, looper.at_ns)),
    )


# -- arithmetic ------------------------------------------------------------------


def _arithmetic(
    case: Case, dying: int, uptime_s: float | None, looper: Looper, runner: Runner | None
) -> tuple[str | None, float]:
    """Compare the loops with the zombies: those counted, else as many as the uptime allows."""
    seen = describe_before(case, looper.at_ns)
    if runner is not None and looper.kind == "unit" and looper.inside is None:
        # Ends were seen since the recorder or the journal began; systemd itself counts, too.
        failures, restarts = runner.unit.failures or 0, runner.unit.restarts or 0
        counted = max(failures, restarts)
        often = f"systemd restarted it {counted:,} times"
        if failures >= restarts:
            often = f"it failed {counted:,} times since boot"
        if counted:
            return _fit(f"{often}, against {dying:,} zombies", dying / counted, seen)
    period_s = looper.period_s
    if uptime_s is None or not math.isfinite(period_s) or period_s <= 0:
        return None, 0.0
    loops = uptime_s / period_s
    up = f"{uptime_s / 86400:.1f} days" if uptime_s > 86400 else f"{uptime_s / 60:.0f} minutes"
    text = f"{up} of uptime at one every {period_s:.0f} s are {loops:,.0f}"
    return _fit(f"{text}, against {dying:,} zombies", dying / loops, seen)


def _fit(text: str, per_loop: float, seen: str) -> tuple[str, float]:
    """Return the sentence about that sum, and its evidence."""
    if 0.5 <= per_loop <= 2:
        return text, 1.5
    if 0.1 <= per_loop <= 10:
        return f"{text} ({per_loop:.1f} each)", 0.5
    if per_loop < 0.1:
        return f"{text}: nearly all that it leaves behind is released", -1.0
    why = f"the loop was seen only {seen}; the rest is older, or has another source"
    return f"{text}: too few to explain them all ({why})", -1.0
