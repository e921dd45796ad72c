"""Everything `nodescope zombies` says, put together from what was read: live, or recorded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nodescope.judgement.zombie_reading import ZombieReading, of_look, read_walk, read_zombies
from nodescope.judgement.zombies import (
    Advice,
    Nature,
    Trend,
    ZombieVerdict,
    advise,
    find_trend,
    judge,
    time_to_critical_ns,
)
from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS

if TYPE_CHECKING:
    from nodescope.judgement.cgroup_churn import Churn
    from nodescope.judgement.zombie_history import History
    from nodescope.recording.coverage import NotObserved
    from nodescope.recording.recording import Recording
    from nodescope.sources.cgroups.watch import Heard
    from nodescope.sources.memory_cgroups.pins import PinSearch
    from nodescope.sources.memory_cgroups.survey import Look

_MAIN_PARENTS = 5  # that advice is given for
FORECAST_NS = 10 * MINUTE_NS  # a shorter trend is no forecast
FIRST_TOLD_NS = 30 * SECOND_NS  # before, what is made and removed may not have been written yet
_MANY = 100  # dying ones: fewer are on every node
_WORTH = 0.01  # of all dying ones: a parent of fewer is not worth advice


@dataclass(slots=True)
class Report:
    """The facts of a report on zombies; None where one was not asked for."""

    reading: ZombieReading
    verdict: ZombieVerdict
    trend: Trend | None
    recorded: bool  # the trend is from a recording
    per_hour_since_boot: float | None
    to_critical_ns: int | None
    nature: Nature
    advice: list[Advice] = field(default_factory=list)
    heard: Heard | None = None
    makers: list[Churn] = field(default_factory=list)
    search: PinSearch | None = None
    pages: dict[str, dict[str, int]] | None = None
    pages_one_in: int = 1
    not_observed: tuple[str, ...] = ()  # what a recording does not have, in words


def assess(look: Look, history: History | None = None) -> Report:
    """Judge a live look, with the trend of a recording if there is one."""
    report = _assess(of_look(look), history)
    if report.trend is None:
        report.trend = _two_looks(look)
    dying = look.count.dying or 0
    if report.verdict.level != "healthy" or dying >= _MANY:
        worth = _WORTH * dying
        main = [each for each in look.parents if each.dying is None or each.dying >= worth]
        report.advice = advise(
            [
                (each.path, each.held, look.hierarchy.directory(each.path))
                for each in main[:_MAIN_PARENTS]
            ],
            look.reclaim_file,
        )
    return report


def assess_recorded(recording: Recording, at_ns: int) -> Report | NotObserved:
    """Judge what was recorded up to a moment, with the hour before it; without advice."""
    from nodescope.judgement.zombie_history import read_history
    from nodescope.recording.window import Window
    from nodescope.sources.cgroups.watch import Heard

    reading = read_zombies(recording, at_ns)
    if not isinstance(reading, ZombieReading):
        return reading
    reading = replace(reading, walk=read_walk(recording, at_ns))
    hour = Window(at_ns - HOUR_NS, at_ns + 1)
    history = read_history(recording, hour)
    report = _assess(reading, history)
    observed = recording.coverage("cgroup_churn", hour)
    told = bool(history.churned) or observed.observed_ns >= FIRST_TOLD_NS
    if told:
        ways = {row.way for row in history.churned}
        lost = sum(gap.lost or 0 for gap in recording.gaps(hour) if gap.source == "cgroup_churn")
        seconds = observed.observed_ns / SECOND_NS
        report.heard = Heard(seconds, at_ns, "scan" if ways == {"scan"} else "tracepoints", lost)
        report.makers = history.churned
    report.not_observed = (
        *report.verdict.not_judged,
        *(() if told else ("who makes cgroups",)),
        *(() if recording.coverage("dying_parents", hour) else ("under which parents they are",)),
    )
    return report


def _assess(reading: ZombieReading, history: History | None) -> Report:
    dying, walk = reading.dying, reading.walk
    verdict = judge(
        dying,
        reading.tracked,
        walk.took_ns if walk else None,
        reading.possible_cpus,
        reading.memory_bytes,
    )
    trend = history.trend if history is not None else None
    since_boot = to_critical = None
    if dying is not None and reading.uptime_ns:
        since_boot = dying / reading.uptime_ns * HOUR_NS
    if dying is not None and trend is not None and trend.over_ns >= FORECAST_NS:
        to_critical = time_to_critical_ns(dying, trend, verdict.critical_at)
    nature = history.nature if history is not None else "unknown"
    return Report(reading, verdict, trend, trend is not None, since_boot, to_critical, nature)


def _two_looks(look: Look) -> Trend | None:
    first, last = look.counts
    if first.dying is None or last.dying is None:
        return None
    return find_trend(look.times_ns, (first.dying, last.dying))
