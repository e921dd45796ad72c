"""Everything `nodescope zombies` says, put together from what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
from nodescope.quantities import HOUR_NS, MINUTE_NS
from nodescope.sources.memory_cgroups.survey import Look

if TYPE_CHECKING:
    from nodescope.judgement.zombie_history import History
    from nodescope.judgement.zombie_makers import Maker
    from nodescope.sources.cgroups.watch import Heard
    from nodescope.sources.memory_cgroups.pins import PinSearch

_MAIN_PARENTS = 5  # that advice is given for
FORECAST_NS = 10 * MINUTE_NS  # a shorter trend is no forecast
_MANY = 100  # dying ones: fewer are on every node
_WORTH = 0.01  # of all dying ones: a parent of fewer is not worth advice


@dataclass(slots=True)
class Report:
    """What is known; what was not asked for is None."""

    look: Look
    verdict: ZombieVerdict
    trend: Trend | None
    recorded: bool  # the trend is from a recording
    per_hour_since_boot: float | None
    to_critical_ns: int | None
    nature: Nature
    advice: list[Advice]
    heard: Heard | None = None
    makers: list[Maker] = field(default_factory=list)
    search: PinSearch | None = None
    pages: dict[str, dict[str, int]] | None = None
    pages_one_in: int = 1


def assess(look: Look, history: History | None = None) -> Report:
    """Judge a look, with the trend of a recording if there is one."""
    count = look.count
    walk_ns = look.walk.took_ns if look.walk else None
    verdict = judge(count.dying, count.tracked, walk_ns, look.possible_cpus, look.memory_bytes)
    recorded = history.trend if history is not None else None
    trend = recorded or _two_looks(look)
    since_boot = None
    if count.dying is not None and look.uptime_ns:
        since_boot = count.dying / look.uptime_ns * HOUR_NS
    to_critical = None
    long_enough = recorded is not None and recorded.over_ns >= FORECAST_NS
    if count.dying is not None and long_enough:
        to_critical = time_to_critical_ns(count.dying, recorded, verdict.critical_at)
    worth = _WORTH * (count.dying or 0)
    main = [parent for parent in look.parents if parent.dying is None or parent.dying >= worth]
    matters = verdict.level != "healthy" or (count.dying or 0) >= _MANY
    advice = (
        []
        if not matters
        else advise(
            [
                (parent.path, parent.held, look.hierarchy.directory(parent.path))
                for parent in main[:_MAIN_PARENTS]
            ],
            look.reclaim_file,
        )
    )
    return Report(
        look,
        verdict,
        trend,
        recorded is not None,
        since_boot,
        to_critical,
        history.nature if history is not None else "unknown",
        advice,
    )


def _two_looks(look: Look) -> Trend | None:
    first, last = look.counts
    if first.dying is None or last.dying is None:
        return None
    return find_trend(look.times_ns, (first.dying, last.dying))
