"""The trouble as it was before a plan, from a recording: what `fix validate` compares with.

A loop is measured from its first round on: its rate is that of the loop, not of the hours
before it began. The time since its last round counts as a rest, so that a loop that had
stopped by itself proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from nodescope.analysis.recurrence import (
    estimate_overdispersion,
    find_slope,
    longest_gap,
    shrink_overdispersion,
)
from nodescope.judgement.zombies import find_nature
from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Target
from nodescope.records.event_details import ContainerDetails, UnitChildDetails
from nodescope.records.node_tables import ContainerRow, UnitRow
from nodescope.remedy.plan import Baseline
from nodescope.remedy.proof.measure_series import NODE, is_container, read_series
from nodescope.remedy.proposals import Proposals

WEEK_S = 7 * 86_400.0
UNEVEN_WEEKS = 0.25  # overdispersion of weekly counts until a recording shows more: CV 50 %
_FEWEST_WEEKS = 4
MECHANISM_NS = 2 * HOUR_NS  # a rate of yesterday says little about the loop of today
_FEWEST = 2  # rounds of a loop that is compared with anything
_OWN_SHARE = 0.5  # of the cgroups made in a place: fewer are somebody else's
_GROWING = 1.3  # a gap so many times the one before: whoever restarts it backs off
_LATEST = 3  # gaps that show how far a back-off has come
# The longest wait before a restart: docker doubles from 100 ms to 1 min, the kubelet from 10 s
# to 5 min, systemd waits `RestartSec` (and up to `RestartMaxDelaySec`, if steps are set).
_UNIT_BACKOFF_S, _DOCKER_BACKOFF_S, _KUBELET_BACKOFF_S = 60.0, 60.0, 300.0
_BACKOFFS_S = {"docker": _DOCKER_BACKOFF_S, "podman": 0.0}


def read_baselines(
    recording: Recording, proposals: Proposals, until_ns: int
) -> tuple[Baseline, ...]:
    """Read what a plan for these proposals will be compared with."""
    targets = [each.action.target for each in proposals.taken if each.action.target is not None]
    return read_target_baselines(recording, targets, until_ns)


def read_target_baselines(
    recording: Recording, targets: Iterable[Target], until_ns: int
) -> tuple[Baseline, ...]:
    """Read the measures of units, containers and cgroups, and those of the node."""
    reach = Window(until_ns - MECHANISM_NS, until_ns)
    found: dict[tuple[str, str], Baseline] = {}
    for target in targets:
        for baseline in _of_target(recording, target, reach):
            found.setdefault((baseline.measure, baseline.subject), baseline)
    for baseline in _of_node(recording, reach):
        found.setdefault((baseline.measure, baseline.subject), baseline)
    return tuple(found.values())


# -- of a unit, container or cgroup ------------------------------------------------------


def _of_target(recording: Recording, target: Target, reach: Window) -> Iterator[Baseline]:
    name = target.name
    if name is None:
        return
    if target.kind == "unit":
        starts = _counted(recording, "unit_restarts", name, reach, _UNIT_BACKOFF_S)
        yield from [starts] if starts else _inside(recording, name, reach)
        cgroup = _cgroup_of_unit(recording, name, reach)
        if cgroup:
            yield from _of_cgroup(recording, cgroup, reach)
    elif target.kind == "container":
        cap_s = _KUBELET_BACKOFF_S
        if target.within is None:
            cap_s = _BACKOFFS_S.get(target.runtime or "docker", _KUBELET_BACKOFF_S)
        starts = _counted(recording, "container_restarts", name, reach, cap_s)
        yield from [starts] if starts else []
        for parent in _parents_of_container(recording, name, reach):
            made = _counted(recording, "cgroups_made", parent, reach, cap_s)
            if made and starts and starts.count >= _OWN_SHARE * made.count:
                yield made
    elif target.kind == "cgroup":
        yield from _of_cgroup(recording, name, reach)


def _of_cgroup(recording: Recording, cgroup: str, reach: Window) -> Iterator[Baseline]:
    made = _counted(recording, "cgroups_made", cgroup, reach, _KUBELET_BACKOFF_S)
    kills = _counted(recording, "oom_kills", cgroup, reach, _UNIT_BACKOFF_S)
    yield from (each for each in (made, kills) if each is not None)


def _counted(
    recording: Recording, measure: str, subject: str, reach: Window, cap_s: float
) -> Baseline | None:
    """Return how often something came since it first did; None for what hardly did."""
    whole = read_series(recording, measure, subject, reach)
    if whole is None or len(whole.times_ns) < _FEWEST:
        return None
    since = Window(whole.times_ns[0], reach.to_ns)
    series = read_series(recording, measure, subject, since)
    if series is None or series.observed_s <= 0:
        return None
    times_s = [(each - since.from_ns) / SECOND_NS for each in series.times_ns]
    until_s = since.length_ns / SECOND_NS
    # The first one opened the window; it is no event of it.
    count = series.count - series.amounts[0]
    return make_count_baseline(measure, subject, times_s, until_s, count, series.observed_s, cap_s)


def make_count_baseline(
    measure: str,
    subject: str,
    times_s: Sequence[float],
    until_s: float,
    count: float,
    observed_s: float,
    cap_s: float,
) -> Baseline:
    """Return the baseline of events at these times after the first one, until the plan.

    `cap_s` is the longest wait of whoever restarts it.
    """
    gaps_s = [later - earlier for earlier, later in pairwise(times_s)]
    return Baseline(
        measure, subject, "mechanism", count, observed_s,
        overdispersion=estimate_overdispersion(times_s[1:], 0, until_s),
        longest_gap_s=max(longest_gap([*times_s, until_s]) or 0.0, _next_gap_s(gaps_s)),
        backoff_s=max(0.0, cap_s - min(gaps_s[-_LATEST:])),
    )  # fmt: skip


def _next_gap_s(gaps_s: Sequence[float]) -> float:
    """Return the gap that comes next if each is longer than the one before; 0 if they are not."""
    last = list(gaps_s[-_LATEST:])
    growing = all(later > _GROWING * earlier for earlier, later in pairwise(last))
    return last[-1] ** 2 / last[-2] if len(last) == _LATEST and growing else 0.0


def _inside(recording: Recording, unit: str, reach: Window) -> Iterator[Baseline]:
    """Yield the failed ends of a child inside a unit that runs on, as they were reported."""
    reports = recording.events(reach, "unit_hidden_loop", "unit_child_failing")
    told = [each.get(UnitChildDetails) for each in reports if each.subject == unit]
    known = [(each.failed_ends, each.watched_s) for each in told]
    ends = [(failed, watched) for failed, watched in known if failed and watched]
    if ends:
        failed, watched = ends[-1]
        yield Baseline("child_failures", unit, "mechanism", float(failed), watched)


def _cgroup_of_unit(recording: Recording, unit: str, reach: Window) -> str | None:
    rows = recording.state(UnitRow, reach.to_ns - 1)
    return next((row.cgroup for row in rows if row.unit == unit and row.cgroup != "/"), None)


def _parents_of_container(recording: Recording, name: str, reach: Window) -> list[str]:
    """Return where the cgroups of a container's runs lie."""
    parents: dict[str, None] = {}
    for row in recording.rows(ContainerRow, reach):
        if row.name and is_container(row.name, name) and row.cgroup_parent:
            parents[row.cgroup_parent] = None
    for event in recording.events(reach, "container_started"):
        parent = event.get(ContainerDetails).cgroup_parent
        if parent and is_container(event.subject, name):
            parents[parent] = None
    return [parent for parent in parents if parent != "/"]


# -- of the node -------------------------------------------------------------------------


def _of_node(recording: Recording, reach: Window) -> Iterator[Baseline]:
    zombies = read_series(recording, "zombies", NODE, reach)
    if zombies is not None and zombies.readings:
        yield make_level_baseline(zombies.readings)
    walks = read_series(recording, "walk_s", NODE, reach)
    if walks is not None and walks.readings:
        costs = sorted(value for _, value in walks.readings)
        yield Baseline("walk_s", NODE, "mechanism", costs[len(costs) // 2], walks.observed_s)
    pegged = _counted(recording, "pegged_s", NODE, reach, 0.0)
    if pegged is not None:
        yield pegged
    whole = Window(min(recording.extent.from_ns, reach.from_ns), reach.to_ns)
    for measure in ("resets", "job_failures"):
        series = read_series(recording, measure, NODE, whole)
        if series is not None and series.observed_s > 0 and series.count:
            times_s = [(each - whole.from_ns) / SECOND_NS for each in series.times_ns]
            until_s = whole.length_ns / SECOND_NS
            yield make_outcome_baseline(measure, times_s, until_s, series.observed_s)


def make_outcome_baseline(
    measure: str, times_s: Sequence[float], until_s: float, observed_s: float
) -> Baseline:
    """Return the baseline of rare events, with how much their weeks differ if that shows."""
    weeks = int(until_s / WEEK_S)
    alpha = UNEVEN_WEEKS
    if weeks >= _FEWEST_WEEKS:
        counts = [0.0] * weeks
        for time_s in times_s:
            counts[min(weeks - 1, int(time_s / until_s * weeks))] += 1
        alpha = max(alpha, shrink_overdispersion(counts, UNEVEN_WEEKS))
    return Baseline(measure, NODE, "outcome", float(len(times_s)), observed_s, overdispersion=alpha)


def make_level_baseline(readings: Sequence[tuple[int, float]]) -> Baseline:
    """Return zombies with their slope; a saw-tooth has none that a remedy could change."""
    times_ns = [time_ns for time_ns, _ in readings]
    values = [value for _, value in readings]
    times_s = [(each - times_ns[0]) / SECOND_NS for each in times_ns]
    slope = find_slope(times_s, values)
    cache = find_nature(times_ns, [round(each) for each in values], 0, 0) == "cache"
    if slope is None or cache:
        slope_per_s = 0.0 if slope is not None else None
        return Baseline(
            "zombies", NODE, "mechanism", values[-1], times_s[-1], slope_per_s=slope_per_s
        )
    return Baseline(
        "zombies", NODE, "mechanism", values[-1], times_s[-1],
        slope_per_s=slope.per_s, slope_sd_per_s=slope.sd_per_s, block_s=slope.block_s,
        blocks=slope.blocks,
    )  # fmt: skip
